--[[
  recipes/worker-slot/end: note that a number is in use no longer than until now, since its holder gives it back.

  Sent before it is given back. A late copy changes nothing: then the note is that of the next holder.

  KEYS[1] ends     hash, number -> `<end> <token> <end before>`, by the clocks of the holders, in ms since 1970
  ARGV[1] number   that is given back
  ARGV[2] token    token of the grant
  ARGV[3] untilMs  the latest time at which the holder's clock has stood while it was in use, in ms since 1970
  REPLY   0        unknown: the note is not of this grant, or there is none
          1        noted
]]
local number, token, untilMs = ARGV[1], ARGV[2], tonumber(ARGV[3])

local by, before = string.match(redis.call('HGET', KEYS[1], number) or '', '^%d+ (%d+) (%d+)$')
if by ~= token then
  return 0
end
local latest = math.max(tonumber(before), untilMs)
-- A full server accepts this first write, and then the others (docs/adr/135).
redis.call('HDEL', KEYS[1], '')
redis.call('HSET', KEYS[1], number, string.format('%.0f ', latest) .. token .. ' ' .. before)
return 1
