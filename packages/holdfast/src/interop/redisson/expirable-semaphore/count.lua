--[[
  interop/redisson/expirable-semaphore/count: how many permits are free and how many are held, after reaping.

  KEYS[1] permits  string, how many are free
  KEYS[2] timeout  sorted set, id of a permit, 16 bytes -> end of its lease in ms
  KEYS[3] leases   what this library records of a plain semaphore, and this one must not have
  ARGV[1] name     the first key as it must arrive here
  ARGV[2] channel  where waiters listen
  ARGV[3] how      plain, sharded or both
  REPLY   {0, free, held}  done
          1                more: there is more to reap, so ask again
          2                plain: there is a plain semaphore of this name
          3                strange: the key holds no count
          4                prefixed: a client has put something before the key
]]
local name, channel, how = ARGV[1], ARGV[2], ARGV[3]

-- include redisson-count
if redis.call('EXISTS', KEYS[3]) == 1 then
  return 2
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- include redisson-publish
-- include redisson-reap
if reap() then
  return 1
end
return {0, count, redis.call('ZCARD', KEYS[2])}
