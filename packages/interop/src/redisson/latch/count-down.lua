--[[
  interop/redisson/latch/count-down: decrement the count once per request, and notify all waiters at zero.

  KEYS[1] latch    string, the count; deleted at zero
  KEYS[2] request  string, the reply to this request if it has already run
  ARGV[1] name     the first key, without any prefix that a client adds
  ARGV[2] keepMs   how long the reply is remembered
  ARGV[3] channel  channel of the waiters
  ARGV[4] how      plain, sharded or both
  REPLY   {0, value}  done: the remaining count, 0 if there was none
          3           strange: the value of the key is not a count
          4           prefixed: the client added a prefix to the key
]]
local name, keepMs, channel, how = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

-- include redisson-count
-- include redisson-once
if not text then
  return answer(0)
end
-- include redisson-publish
if count == 1 then
  publish(how, channel, '0')
end
if count > 1 then
  redis.call('INCRBY', KEYS[1], -1)
else
  redis.call('DEL', KEYS[1])
end
return answer(math.max(0, count - 1))
