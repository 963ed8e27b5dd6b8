--[[
  interop/redisson/semaphore/extend: begin the lease of permits anew, if they are still ours.

  A lease that is over but was not taken back yet is still ours: its permits were never free since.

  KEYS[1] permits  string, how many are free
  KEYS[2] leases   sorted set, owner -> end of its lease in ms
  KEYS[3] grants   hash, owner -> <permits>/<token>
  ARGV[1] owner    id of the claim that was granted
  ARGV[2] token    of its grant
  ARGV[3] leaseMs  length of the lease, counted from now
  RENEWS
  REPLY   1        extended
          2        claimed: somebody has taken the permits back, and others may have them
          3        forgotten: the semaphore is gone
]]
local owner, token, leaseMs = ARGV[1], ARGV[2], ARGV[3]

if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('DEL', KEYS[2], KEYS[3])
  return 3
end
if string.match(redis.call('HGET', KEYS[3], owner) or '', '%d+$') ~= token then
  return 2
end
-- A full server accepts this first write, and then the others (docs/adr/135).
redis.call('ZREM', KEYS[2], '')
local time = redis.call('TIME')
redis.call('ZADD', KEYS[2], 'GT', time[1] * 1000 + math.floor(time[2] / 1000) + leaseMs, owner)
-- include redisson-life
return 1
