--[[
  interop/redisson/semaphore/try-set-permits: say how many permits there are, unless somebody has.

  The same for both sorts of semaphore, which share the key of the count.

  KEYS[1] permits  string, how many are free
  KEYS[2] request  string, the answer to this request if it was carried out before
  KEYS[3] other    what a semaphore of the other sort has under this name
  KEYS[4] leases   sorted set, what this library recorded of a plain semaphore that is gone
  KEYS[5] grants   hash, the same
  ARGV[1] name     the first key as it must arrive here
  ARGV[2] amount   how many, 0 or more
  ARGV[3] ttlMs    how long the count is to live; 0 for ever
  ARGV[4] keepMs   how long the answer is remembered
  ARGV[5] channel  where waiters listen
  ARGV[6] how      plain, sharded or both
  GRANTS  by itself
  REPLY   {0, value}  done: 1 if it was set, 0 if there was a count already
          2           mixed: there is a semaphore of the other sort
          3           strange: the key holds no count
          4           prefixed: a client has put something before the key
]]
local name, amount, ttlMs, keepMs = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local channel, how = ARGV[5], ARGV[6]

-- include redisson-count
-- include redisson-once
if redis.call('EXISTS', KEYS[3]) == 1 then
  return 2
end
if text then
  return answer(0)
end
-- include redisson-publish
if amount ~= '0' then
  publish(how, channel, amount)
end
redis.call('DEL', KEYS[4], KEYS[5])
if ttlMs == '0' then
  redis.call('SET', KEYS[1], amount)
else
  redis.call('SET', KEYS[1], amount, 'PX', ttlMs)
end
return answer(1)
