--[[
  interop/redisson/latch/count: return the count.

  KEYS[1] latch    string, the count
  ARGV[1] name     the first key, without any prefix that a client adds
  REPLY   {0, left, nowUs}  counting: left is also 0 if there is no count; waiters continue at 0
          3                 strange: the value of the key is not a count
          4                 prefixed: the client added a prefix to the key
]]
local name = ARGV[1]

-- include redisson-count
local time = redis.call('TIME')
return {0, math.max(0, count), time[1] * 1000000 + time[2]}
