--[[
  interop/redisson/semaphore/count: how many permits are free, after those of dead holders were taken back.

  KEYS[1] permits  string, how many are free
  KEYS[2] leases   sorted set, owner -> end of its lease in ms
  KEYS[3] grants   hash, owner -> <permits>/<token>
  KEYS[4] timeout  what a semaphore whose permits expire has, and this one must not
  ARGV[1] name     the first key as it must arrive here
  ARGV[2] channel  where waiters listen
  ARGV[3] how      plain, sharded or both
  REPLY   {0, value}  done: how many are free, 0 if there is no such semaphore, less than 0 if somebody took some away
          1           more: there is more to take back, so ask again
          2           expirable: permits of this name expire
          3           strange: the key holds no count
          4           prefixed: a client has put something before the key
]]
local name, channel, how = ARGV[1], ARGV[2], ARGV[3]

-- include redisson-count
if redis.call('EXISTS', KEYS[4]) == 1 then
  return 2
end
if not text then
  -- Whoever had permits had them of a semaphore that is gone.
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
