--[[
  interop/redisson/semaphore/count: return the number of free permits, after reclaiming those of expired leases.

  KEYS[1] permits  string, number of free permits
  KEYS[2] leases   sorted set, owner -> end of its lease in ms
  KEYS[3] grants   hash, owner -> <permits>/<token>
  KEYS[4] timeout  key of a semaphore with permits that expire; must not exist
  ARGV[1] name     the first key, without any prefix that a client adds
  ARGV[2] channel  channel of the waiters
  ARGV[3] how      plain, sharded or both
  REPLY   {0, value}  done: number of free permits, 0 without a semaphore, negative if more were removed than were free
          1           more: there are more permits to take back, so ask again
          2           expirable: the name belongs to a semaphore with permits that expire
          3           strange: the value of the key is not a count
          4           prefixed: the client added a prefix to the key
]]
local name, channel, how = ARGV[1], ARGV[2], ARGV[3]

-- include redisson-count
if redis.call('EXISTS', KEYS[4]) == 1 then
  return 2
end
if not text then
  -- The recorded permits belong to a semaphore that no longer exists.
  redis.call('DEL', KEYS[2], KEYS[3])
  return {0, 0}
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- include redisson-publish
-- include redisson-leases
if takeBack() then
  return 1
end
return {0, count}
