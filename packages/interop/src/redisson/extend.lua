--[[
  interop/redisson/extend: renew the lease of a lock if the claim still holds it.

  Also renews a fair lock or a write lock, whose holder is a field of the same hash. Never shortens the lease.

  KEYS[1] lock     hash, owner -> hold count; expires with the lease
  ARGV[1] owner    field of the holder
  ARGV[2] leaseMs  length of the lease from now
  RENEWS
  REPLY   1        extended
          2        forgotten: the claim does not hold the lock, and the server cannot tell since when
]]
local owner, leaseMs = ARGV[1], ARGV[2]

if redis.call('HEXISTS', KEYS[1], owner) == 0 then
  return 2
end
if redis.call('PTTL', KEYS[1]) - leaseMs < 0 then
  redis.call('PEXPIRE', KEYS[1], leaseMs)
end
return 1
