--[[
  recipes/worker-slot/end: record the last use of a number that its holder is about to release.

  Sent before the release. A late copy changes nothing, because the record then belongs to the next holder.

  KEYS[1] ends     hash, number -> `<end> <token> <end before>`; ends are in ms since 1970 on the holders' clocks
  ARGV[1] number   number that is about to be released
  ARGV[2] token    token of the grant
  ARGV[3] untilMs  last use of the number, in milliseconds since 1970 on the holder's clock
  REPLY   0        unknown: the record belongs to another grant, or there is none
          1        noted
]]
local number, token, untilMs = ARGV[1], ARGV[2], tonumber(ARGV[3])

local by, before = string.match(redis.call('HGET', KEYS[1], number) or '', '^%d+ (%d+) (%d+)$')
if by ~= token then
  return 0
end
local latest = math.max(tonumber(before), untilMs)
-- A server at its memory limit accepts this command, and then all later writes of this script (docs/adr/135).
redis.call('HDEL', KEYS[1], '')
redis.call('HSET', KEYS[1], number, string.format('%.0f ', latest) .. token .. ' ' .. before)
return 1
