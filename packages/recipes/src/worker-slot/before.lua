--[[
  recipes/worker-slot/before: the last time at which the previous holder may have used a number. Changes nothing.

  KEYS[1] ends     hash, number -> `<end> <token> <end before>`; ends are in ms since 1970 on the holders' clocks
  ARGV[1] number   number that was granted
  ARGV[2] token    token of the grant
  REPLY   0        unknown: the record belongs to another grant, or there is none
          {1, beforeMs}  known; 0 if there was no previous holder
]]
local number, token = ARGV[1], ARGV[2]

local by, before = string.match(redis.call('HGET', KEYS[1], number) or '', '^%d+ (%d+) (%d+)$')
if by ~= token then
  return 0
end
return {1, tonumber(before)}
