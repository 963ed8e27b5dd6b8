--[[
  interop/redisson/read-write/read-extend: renew the lease of a read hold if it still exists.

  Never shortens the expiry of the hash, because all readers share it. While the hash lists the owner, no other claim
  can write, even if the key of the hold is gone. So the script creates that key again.

  KEYS[1] lock     hash, mode -> read or write, owner -> hold count; expires with the longest lease
  KEYS[2] hold     string, 1; expires with this lease
  ARGV[1] owner    id of the claim that was granted
  ARGV[2] leaseMs  length of the lease from now
  RENEWS
  REPLY   1        extended
          2        forgotten: the claim does not hold the lock, and the server cannot tell since when
]]
local owner, leaseMs = ARGV[1], ARGV[2]

if redis.call('HEXISTS', KEYS[1], owner) == 0 then
  return 2
end
-- A server at its memory limit accepts this command, and then all later writes of this script (docs/adr/135).
redis.call('HDEL', KEYS[1], '')
if redis.call('PTTL', KEYS[2]) - leaseMs < 0 then
  redis.call('SET', KEYS[2], 1, 'PX', leaseMs)
end
if redis.call('PTTL', KEYS[1]) - leaseMs < 0 then
  redis.call('PEXPIRE', KEYS[1], leaseMs)
end
return 1
