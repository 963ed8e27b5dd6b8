--[[
  interop/redisson/latch/count: what is left to count.

  KEYS[1] latch    string, what is left to count
  ARGV[1] name     the first key as it must arrive here
  REPLY   {0, left, nowUs}  counting: 0 also if there is no count, and then everybody may go on; and the server's clock
          3                 strange: the key holds no count
          4                 prefixed: a client has put something before the key
]]
local name = ARGV[1]

-- include redisson-count
local time = redis.call('TIME')
return {0, math.max(0, count), time[1] * 1000000 + time[2]}
