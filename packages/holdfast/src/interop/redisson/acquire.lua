--[[
  interop/redisson/acquire: take the lock of Redisson if it is free.

  RLock, FencedLock and SpinLock are the same hash. An owner that asks again gets the same answer and is not counted twice,
  so that a request whose reply was lost can be sent again. A key without an expiry is somebody's all the same. The hash
  of a read-write lock has a field that no lock has, and neither side would exclude the other: refused.

  KEYS[1] lock     hash, owner -> hold count; expires with the lease
  KEYS[2] fence    string, the last token of a FencedLock; never expires
  ARGV[1] name     the first key as it must arrive here
  ARGV[2] owner    id of the claim
  ARGV[3] leaseMs  length of the lease
  ARGV[4] fenced   1 if a grant has a token of Redisson's counter; else it has the time of the server in µs
  GRANTS  by itself
  REPLY   {1, token}          granted
          {2, restMs, nowUs}  refused: restMs is left of the present lease, -1 if it has no end
          3                   mistyped: the key is of something else
          4                   prefixed: a client has put something before the key
]]
local name, owner, leaseMs, fenced = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

-- include redisson-field
if not rawequal(name, KEYS[1]) then
  return 4
end
if has('mode') ~= 0 then
  return 3
end

local time = redis.call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local isOurs = redis.call('HEXISTS', KEYS[1], owner) == 1
if not isOurs and redis.call('EXISTS', KEYS[1]) == 1 then
  return {2, redis.call('PTTL', KEYS[1]), nowUs}
end

local token = nowUs
if fenced == '1' then
  -- Whoever asks again had the last one: nobody else was granted since.
  local last = isOurs and redis.call('GET', KEYS[2])
  token = tonumber(last or redis.call('INCR', KEYS[2]))
end
if not isOurs then
  redis.call('HSET', KEYS[1], owner, 1)
end
if redis.call('PTTL', KEYS[1]) - leaseMs < 0 then
  redis.call('PEXPIRE', KEYS[1], leaseMs)
end
return {1, token}
