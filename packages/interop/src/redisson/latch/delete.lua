--[[
  interop/redisson/latch/delete: delete the count, and let all waiters continue.

  A latch without a count is open, so the script publishes the same message as at zero. Redisson publishes the message
  of a new count instead, so its waiters wait forever.

  KEYS[1] latch    string, the count
  KEYS[2] request  string, the reply to this request if it has already run
  ARGV[1] name     the first key, without any prefix that a client adds
  ARGV[2] keepMs   how long the reply is remembered
  ARGV[3] channel  channel of the waiters
  ARGV[4] how      plain, sharded or both
  REPLY   {0, value}  done: 1, or 0 if there was no count
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
publish(how, channel, '0')
redis.call('DEL', KEYS[1])
return answer(1)
