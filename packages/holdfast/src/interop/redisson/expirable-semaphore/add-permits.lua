--[[
  interop/redisson/expirable-semaphore/add-permits: put permits in, or take some away, beside those that are held.

  INCRBY keeps the life of the count, which writing it anew would not.

  KEYS[1] permits  string, how many are free
  KEYS[2] request  string, the answer to this request if it was carried out before
  KEYS[3] leases   what this library records of a plain semaphore, and this one must not have
  ARGV[1] name     the first key as it must arrive here
  ARGV[2] amount   how many, less than 0 to take some away
  ARGV[3] keepMs   how long the answer is remembered
  ARGV[4] channel  where waiters listen
  ARGV[5] how      plain, sharded or both
  REPLY   {0, value}  done: 1
          2           plain: there is a plain semaphore of this name
          3           strange: the key holds no count
          4           prefixed: a client has put something before the key
]]
local name, amount, keepMs, channel, how = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- include redisson-count
-- include redisson-once
if redis.call('EXISTS', KEYS[3]) == 1 then
  return 2
end
-- include redisson-publish
if tonumber(amount) > 0 then
  publish(how, channel, amount)
end
redis.call('INCRBY', KEYS[1], amount)
return answer(1)
