--[[
  pausing/extend: change the end of a pause, for a lock of any kind.

  This is one atomic step, because resuming and pausing again could grant the lock in between. The text of a pause
  contains its end, so the script replaces the text. A repeated request gets the same reply.

  KEYS[1] pause    string, the current pause, during which nothing is granted; expires at its end
  ARGV[1] meant    the pause to change
  ARGV[2] renewed  the same pause with its new end
  ARGV[3] untilMs  the new end, in ms since 1970
  REPLY   {0, nowMs, texts...}  other: texts is the pause that is in effect instead, or empty if there is none
          {1, nowMs}            extended
          {2, nowMs}            over: the new end has passed
]]
local meant, renewed, untilMs = ARGV[1], ARGV[2], tonumber(ARGV[3])

local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local pause = redis.call('GET', KEYS[1])
if pause == renewed then
  return {1, nowMs}
end
if pause ~= meant then
  return {0, nowMs, pause or nil}
end
if untilMs <= nowMs then
  return {2, nowMs}
end
redis.call('SET', KEYS[1], renewed, 'PX', string.format('%.0f', untilMs - nowMs))
return {1, nowMs}
