--[[
  interop/redisson/expirable-semaphore/set-permits: change how many permits there are, counting those that are held.

  With fewer than are held, the count of free ones falls below zero, and nobody is granted until enough came back. What is
  over and was not reaped yet counts as held: reaping moves it to the free ones, and the sum stays.

  KEYS[1] permits  string, how many are free
  KEYS[2] request  string, the answer to this request if it was carried out before
  KEYS[3] timeout  sorted set, id of a permit, 16 bytes -> end of its lease in ms
  KEYS[4] leases   what this library records of a plain semaphore, and this one must not have
  ARGV[1] name     the first key as it must arrive here
  ARGV[2] amount   how many, 0 or more
  ARGV[3] keepMs   how long the answer is remembered
  ARGV[4] channel  where waiters listen
  ARGV[5] how      plain, sharded or both
  GRANTS  by itself
  REPLY   {0, value}  done: 1 if it was changed, 0 if there were so many
          2           plain: there is a plain semaphore of this name
          3           strange: the key holds no count
          4           prefixed: a client has put something before the key
]]
local name, amount, keepMs, channel, how = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- include redisson-count
-- include redisson-once
if redis.call('EXISTS', KEYS[4]) == 1 then
  return 2
end
local change = amount - count - redis.call('ZCARD', KEYS[3])
if text and change == 0 then
  return answer(0)
end
-- include redisson-publish
if amount ~= '0' then
  publish(how, channel, amount)
end
if text then
  redis.call('INCRBY', KEYS[1], change)
else
  redis.call('SET', KEYS[1], amount)
end
return answer(1)
