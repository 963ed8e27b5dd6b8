--[[
  interop/redisson/expirable-semaphore/count: return the number of free and held permits, after reclaiming expired ones.

  KEYS[1] permits  string, number of free permits
  KEYS[2] timeout  sorted set, id of a permit, 16 bytes -> end of its lease in ms
  KEYS[3] leases   record of a plain semaphore; must not exist
  ARGV[1] name     the first key, without any prefix that a client adds
  ARGV[2] channel  channel of the waiters
  ARGV[3] how      plain, sharded or both
  REPLY   {0, free, held}  done
          1                more: there are more permits to take back, so ask again
          2                plain: the name belongs to a plain semaphore
          3                strange: the value of the key is not a count
          4                prefixed: the client added a prefix to the key
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
