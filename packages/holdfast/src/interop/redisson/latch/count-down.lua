--[[
  interop/redisson/latch/count-down: take one off the count, once for each request; at zero, let everybody go on.

  KEYS[1] latch    string, what is left to count; gone at zero
  KEYS[2] request  string, the answer to this request if it was carried out before
  ARGV[1] name     the first key as it must arrive here
  ARGV[2] keepMs   how long the answer is remembered
  ARGV[3] channel  where waiters listen
  ARGV[4] how      plain, sharded or both
  REPLY   {0, value}  done: what is left, 0 also if there was no count
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
if count == 1 then
  publish(how, channel, '0')
end
if count > 1 then
  redis.call('INCRBY', KEYS[1], -1)
else
  redis.call('DEL', KEYS[1])
end
return answer(math.max(0, count - 1))
