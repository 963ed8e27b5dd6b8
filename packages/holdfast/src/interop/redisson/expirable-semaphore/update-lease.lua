--[[
  interop/redisson/expirable-semaphore/update-lease: let the lease of a permit end at another time, whoever acquired it.

  Unlike a renewal it may also end sooner, or never.

  KEYS[1] permits  string, how many are free
  KEYS[2] timeout  sorted set, id of a permit, 16 bytes -> end of its lease in ms, 922337203685477 if it has none
  ARGV[1] name     the first key as it must arrive here
  ARGV[2] id       of the permit, 32 hexadecimal digits
  ARGV[3] leaseMs  length of the lease, counted from now; -1 if it is not to end
  ARGV[4] channel  where waiters listen
  ARGV[5] how      plain, sharded or both
  REPLY   {0, value}  done: 1 if it was held, 0 if nobody holds that permit
          3           strange: the key holds no count
          4           prefixed: a client has put something before the key
]]
local name, id, leaseMs, channel, how = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]

-- include redisson-count
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- include redisson-publish
-- include redisson-reap
-- include redisson-ids
reap()
local ends = redis.call('ZSCORE', KEYS[2], toBytes(id))
if not ends or ends - now <= 0 then
  return {0, 0}
end
-- A full server accepts this first write, and then the others (docs/adr/135).
redis.call('ZREM', KEYS[2], '')
redis.call('ZADD', KEYS[2], leaseMs < 0 and '922337203685477' or now + leaseMs, toBytes(id))
return {0, 1}
