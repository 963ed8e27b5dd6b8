--[[
  interop/redisson/semaphore/extend: renew the lease of permits if the claim still holds them.

  An ended lease can still be renewed if its permits have not been taken back yet: they have not been free since.

  KEYS[1] permits  string, number of free permits
  KEYS[2] leases   sorted set, owner -> end of its lease in ms
  KEYS[3] grants   hash, owner -> <permits>/<token>
  ARGV[1] owner    id of the claim that was granted
  ARGV[2] token    token of its grant
  ARGV[3] leaseMs  length of the lease from now
  RENEWS
  REPLY   1        extended
          2        claimed: the permits were taken back, and other claims may hold them
          3        forgotten: the semaphore no longer exists
]]
local owner, token, leaseMs = ARGV[1], ARGV[2], ARGV[3]

if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('DEL', KEYS[2], KEYS[3])
  return 3
end
if string.match(redis.call('HGET', KEYS[3], owner) or '', '%d+$') ~= token then
  return 2
end
-- A server at its memory limit accepts this command, and then all later writes of this script (docs/adr/135).
redis.call('ZREM', KEYS[2], '')
local time = redis.call('TIME')
redis.call('ZADD', KEYS[2], 'GT', time[1] * 1000 + math.floor(time[2] / 1000) + leaseMs, owner)
-- include redisson-life
return 1
