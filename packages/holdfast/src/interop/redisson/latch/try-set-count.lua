--[[
  interop/redisson/latch/try-set-count: set the count, unless there is one.

  KEYS[1] latch    string, what is left to count
  KEYS[2] request  string, the answer to this request if it was carried out before
  ARGV[1] name     the first key as it must arrive here
  ARGV[2] amount   the count, 1 or more
  ARGV[3] keepMs   how long the answer is remembered
  ARGV[4] channel  where waiters listen
  ARGV[5] how      plain, sharded or both
  REPLY   {0, value}  done: 1 if it was set, 0 if there was a count already
          3           strange: the key holds no count
          4           prefixed: a client has put something before the key
]]
local name, amount, keepMs, channel, how = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- include redisson-count
-- include redisson-once
if text then
  return answer(0)
end
-- include redisson-publish
publish(how, channel, '1')
redis.call('SET', KEYS[1], amount)
return answer(1)
