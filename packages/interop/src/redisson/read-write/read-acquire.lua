--[[
  interop/redisson/read-write/read-acquire: take the read side, unless another claim writes.

  A Redisson reader that leaves would delete the hash, and this hold with it, if it did not find the key of the hold. If
  an owner asks again, it gets the same reply and is not counted twice.

  KEYS[1] lock     hash, mode -> read or write, owner -> hold count; expires with the longest lease
  KEYS[2] hold     string, 1; expires with this lease
  ARGV[1] name     the first key, without any prefix that a client adds
  ARGV[2] owner    id of the claim
  ARGV[3] leaseMs  length of the lease
  GRANTS  by itself
  REPLY   {1, token}          granted; the token is the server's clock in µs
          {2, restMs, nowUs}  refused: restMs is the remaining time of the lease, -1 if it never ends
          3                   mistyped: the key belongs to an object of a different type
          4                   prefixed: the client added a prefix to the key
]]
local name, owner, leaseMs = ARGV[1], ARGV[2], ARGV[3]

-- include redisson-mode
if not rawequal(name, KEYS[1]) then
  return 4
end
local mode = modeOf()
if mode == nil then
  return 3
end

local time = redis.call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local leftMs = redis.call('PTTL', KEYS[1])
if mode == 'write' and redis.call('HEXISTS', KEYS[1], owner) == 0 then
  return {2, leftMs, nowUs}
end
if not mode then
  redis.call('HSET', KEYS[1], 'mode', 'read')
end
redis.call('HSET', KEYS[1], owner, 1)
-- The lease is never shortened: this may be a late copy of the request that arrives after an extension.
if redis.call('PTTL', KEYS[2]) - leaseMs < 0 then
  redis.call('SET', KEYS[2], 1, 'PX', leaseMs)
end
if leftMs - leaseMs < 0 then
  redis.call('PEXPIRE', KEYS[1], leaseMs)
end
return {1, nowUs}
