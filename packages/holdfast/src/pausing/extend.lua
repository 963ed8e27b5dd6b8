--[[
  pausing/extend: give a pause another end, of whichever kind the lock is.

  One step, because resuming and pausing again would grant somebody in between. The text of a pause says when it ends, so
  another text takes its place. Sent again it gives the same answer.

  KEYS[1] pause    string, the pause that keeps everybody from being granted; expires at its end
  ARGV[1] meant    the pause that is meant
  ARGV[2] renewed  the same pause with its new end
  ARGV[3] untilMs  that end, in ms since 1970
  REPLY   {0, nowMs, texts...}  other: another pause stands, which is the text; or none
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
