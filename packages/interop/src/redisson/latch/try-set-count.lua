--[[
  interop/redisson/latch/try-set-count: set the count, unless there is one.

  KEYS[1] latch    string, the count
  KEYS[2] request  string, the reply to this request if it has already run
  ARGV[1] name     the first key, without any prefix that a client adds
  ARGV[2] amount   the count, 1 or more
  ARGV[3] keepMs   how long the reply is remembered
  ARGV[4] channel  channel of the waiters
  ARGV[5] how      plain, sharded or both
  REPLY   {0, value}  done: 1 if the count was set, 0 if there already is one
          3           strange: the value of the key is not a count
          4           prefixed: the client added a prefix to the key
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
