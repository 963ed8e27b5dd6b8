--[[
  recipes/cache/extend: renew the lease of a load, never shortening it.

  KEYS[1] entry    hash, see recipes/cache/look
  ARGV[1] owner    id of the attempt
  ARGV[2] leaseMs  length of the lease, counted from now
  ARGV[3] keepMs   minimum lifetime of the entry, counted from now
  REPLY   {1}  extended
          {2}  claimed: another attempt is loading, or the entry was invalidated
          {3}  forgotten: there is no entry
]]
local owner, leaseMs, keepMs = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local entry = redis.call('HMGET', KEYS[1], 'owner', 'until', 'token')
if not entry[3] then
  return {3}
end
if entry[1] ~= owner then
  return {2}
end
local time = redis.call('TIME')
local endUs = math.max(tonumber(entry[2]), time[1] * 1000000 + time[2] + leaseMs * 1000)
-- A server at its memory limit accepts this command, and then all later writes of this script (docs/adr/135).
redis.call('HDEL', KEYS[1], '')
redis.call('HSET', KEYS[1], 'until', string.format('%.0f', endUs))
if redis.call('PTTL', KEYS[1]) < keepMs then
  redis.call('PEXPIRE', KEYS[1], keepMs)
end
return {1}
