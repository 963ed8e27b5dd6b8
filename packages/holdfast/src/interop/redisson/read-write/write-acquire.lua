--[[
  interop/redisson/read-write/write-acquire: write under the lock of Redisson if nobody reads or writes.

  An owner that asks again gets the same answer and is not counted twice.

  KEYS[1] lock     hash, mode -> read or write, owner -> hold count; expires with the longest lease
  ARGV[1] name     the first key as it must arrive here
  ARGV[2] owner    id of the claim, with what marks a writer
  ARGV[3] leaseMs  length of the lease
  GRANTS  by itself
  REPLY   {1, token}          granted; the token is the time of the server in µs
          {2, restMs, nowUs}  refused: restMs is left of the present lease, -1 if it has no end
          3                   mistyped: the key is of something else
          4                   prefixed: a client has put something before the key
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
if mode and redis.call('HEXISTS', KEYS[1], owner) == 0 then
  return {2, leftMs, nowUs}
end
redis.call('HSET', KEYS[1], 'mode', 'write')
redis.call('HSET', KEYS[1], owner, 1)
if leftMs - leaseMs < 0 then
  redis.call('PEXPIRE', KEYS[1], leaseMs)
end
return {1, nowUs}
