--[[
  interop/redisson/expirable-semaphore/extend: renew the lease of permits if all of them are still held.

  A permit whose lease has ended still counts as held until it is taken back, because it has not been free since. This
  script takes none back.

  KEYS[1] timeout  sorted set, id of a permit, 16 bytes -> end of its lease in ms
  ARGV[1] ids      ids of the permits, 32 hexadecimal digits each
  ARGV[2] leaseMs  length of the lease from now
  RENEWS
  REPLY   1        extended
          2        claimed: a permit was taken back, or another client has released it by its id
]]
local ids, leaseMs = ARGV[1], ARGV[2]

-- include redisson-ids
for id in string.gmatch(ids, string.rep('%x', 32)) do
  if not redis.call('ZSCORE', KEYS[1], toBytes(id)) then
    return 2
  end
end
local time = redis.call('TIME')
-- A server at its memory limit accepts this command, and then all later writes of this script (docs/adr/135).
redis.call('ZREM', KEYS[1], '')
local ends = time[1] * 1000 + math.floor(time[2] / 1000) + leaseMs
for id in string.gmatch(ids, string.rep('%x', 32)) do
  redis.call('ZADD', KEYS[1], 'XX', 'GT', ends, toBytes(id))
end
return 1
