--[[
  pausing/extend: give the pause of a mutex another end.

  One step, since resuming and pausing again would grant somebody in between. The id of a pause says when it ends, so another one
  takes its place, where it stands or as it holds. Sent again it gives the same answer.

  KEYS[1] lock     string, owner of the claim that holds; expires with its lease
  KEYS[2] fence    string, last token issued
  KEYS[3] queue    sorted set, owner of a waiting claim -> arrival number
  ARGV[1] pause    the pause that is meant
  ARGV[2] renewed  the same pause with its new end
  ARGV[3] untilMs  that end, in ms since 1970
  REPLY   {0, nowMs, texts...}  other: another pause stands, which is the text; or none
          {1, nowMs}            extended
          {2, nowMs}            over: the new end has passed
]]
local meant, renewed, untilMs = ARGV[1], ARGV[2], tonumber(ARGV[3])

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local nowMs = math.floor(now / 1000)
-- include paused
local holder = redis.call('GET', KEYS[1])
local holding = holder and string.match(holder, '^pause/.*')
local pause = holding or pauseAtHead(now)
if pause == renewed then
  return {1, nowMs}
end
if pause ~= meant then
  return {0, nowMs, pause}
end
local restMs = untilMs - nowMs
if restMs <= 0 then
  return {2, nowMs}
end
if holding then
  redis.call('SET', KEYS[1], renewed, 'PX', string.format('%.0f', restMs))
  redis.call('PEXPIRE', KEYS[2], string.format('%.0f', restMs + 600000))
else
  local place = redis.call('ZSCORE', KEYS[3], pause)
  redis.call('ZREM', KEYS[3], pause)
  redis.call('ZADD', KEYS[3], place, renewed)
  redis.call('PEXPIRE', KEYS[3], string.format('%.0f', restMs + 86400000))
end
return {1, nowMs}
