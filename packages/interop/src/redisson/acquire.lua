--[[
  interop/redisson/acquire: take the Redisson lock if it is free.

  RLock, FencedLock and SpinLock use the same hash. If an owner asks again, it gets the same reply and is not counted
  twice, so a request without a reply can be sent again. A key without an expiry counts as held. The hash of a
  read-write lock, which has the field `mode`, is refused because the two kinds would not exclude each other.

  KEYS[1] lock     hash, owner -> hold count; expires with the lease
  KEYS[2] fence    string, the last token of a FencedLock; never expires
  ARGV[1] name     the first key, without any prefix that a client adds
  ARGV[2] owner    id of the claim
  ARGV[3] leaseMs  length of the lease
  ARGV[4] fenced   1 if the token comes from Redisson's counter; otherwise it is the server's clock in µs
  GRANTS  by itself
  REPLY   {1, token}          granted
          {2, restMs, nowUs}  refused: restMs is the remaining time of the lease, -1 if it never ends
          3                   mistyped: the key belongs to an object of a different type
          4                   prefixed: the client added a prefix to the key
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
  -- An owner that asks again has the last token, because no other claim has been granted since.
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
