--[[
  interop/redisson/expirable-semaphore/extend: begin the lease of permits anew, if all of them are still there.

  One that is over but was not reaped yet is still there: it was never free since. It is not reaped here either.

  KEYS[1] timeout  sorted set, id of a permit, 16 bytes -> end of its lease in ms
  ARGV[1] ids      of the permits, 32 hexadecimal digits each
  ARGV[2] leaseMs  length of the lease, counted from now
  RENEWS
  REPLY   1        extended
          2        claimed: a permit was reaped, or somebody has released it by its id
]]
local ids, leaseMs = ARGV[1], ARGV[2]

-- include redisson-ids
for id in string.gmatch(ids, string.rep('%x', 32)) do
  if not redis.call('ZSCORE', KEYS[1], toBytes(id)) then
    return 2
  end
end
local time = redis.call('TIME')
-- A full server accepts this first write, and then the others (docs/adr/135).
redis.call('ZREM', KEYS[1], '')
local ends = time[1] * 1000 + math.floor(time[2] / 1000) + leaseMs
for id in string.gmatch(ids, string.rep('%x', 32)) do
  redis.call('ZADD', KEYS[1], 'XX', 'GT', ends, toBytes(id))
end
return 1
