--[[
  recipes/once/extend: renew the lease of an attempt, never shortening it.

  An expired lease can be renewed if no other attempt has begun since.

  KEYS[1] record   hash, see recipes/once/begin
  ARGV[1] owner    id of the attempt
  ARGV[2] leaseMs  length of the lease, counted from now
  ARGV[3] keepMs   how long the record lives from now
  RENEWS
  REPLY   {1}  extended
          {2}  claimed: another attempt has begun, or this one has ended
          {3}  forgotten: there is no record
]]
local owner, leaseMs, keepMs = ARGV[1], tonumber(ARGV[2]), ARGV[3]

local record = redis.call('HMGET', KEYS[1], 'state', 'owner', 'until')
if not record[1] then
  return {3}
end
if record[1] ~= 'running' or record[2] ~= owner then
  return {2}
end
local time = redis.call('TIME')
local endUs = math.max(tonumber(record[3]), time[1] * 1000000 + time[2] + leaseMs * 1000)
-- A server at its memory limit accepts this command, and then all later writes of this script (docs/adr/135).
redis.call('PEXPIRE', KEYS[1], keepMs)
redis.call('HSET', KEYS[1], 'until', string.format('%.0f', endUs))
return {1}
