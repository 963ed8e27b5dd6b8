--[[
  interop/redisson/latch/delete: forget the count, and let everybody go on.

  A latch without a count is open, so those who wait are told what they are told at zero. Redisson tells them that a new
  count was set, and they wait for ever.

  KEYS[1] latch    string, what is left to count
  KEYS[2] request  string, the answer to this request if it was carried out before
  ARGV[1] name     the first key as it must arrive here
  ARGV[2] keepMs   how long the answer is remembered
  ARGV[3] channel  where waiters listen
  ARGV[4] how      plain, sharded or both
  REPLY   {0, value}  done: 1, or 0 if there was no count
          3           strange: the key holds no count
          4           prefixed: a client has put something before the key
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
