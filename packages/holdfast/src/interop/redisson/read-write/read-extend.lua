--[[
  interop/redisson/read-write/read-extend: begin the lease of a read hold anew, if it is still there.

  Never makes the hash shorter, since it is everybody's. While the hash lists the owner nobody writes, even if the key of
  its hold is gone: it is made again.

  KEYS[1] lock     hash, mode -> read or write, owner -> hold count; expires with the longest lease
  KEYS[2] hold     string, 1; expires with this lease
  ARGV[1] owner    id of the claim that was granted
  ARGV[2] leaseMs  length of the lease, counted from now
  RENEWS
  REPLY   1        extended
          2        forgotten: it is not ours, and nothing tells since when
]]
local owner, leaseMs = ARGV[1], ARGV[2]

if redis.call('HEXISTS', KEYS[1], owner) == 0 then
  return 2
end
-- A full server accepts this first write, and then the others (docs/adr/135).
redis.call('HDEL', KEYS[1], '')
if redis.call('PTTL', KEYS[2]) - leaseMs < 0 then
  redis.call('SET', KEYS[2], 1, 'PX', leaseMs)
end
if redis.call('PTTL', KEYS[1]) - leaseMs < 0 then
  redis.call('PEXPIRE', KEYS[1], leaseMs)
end
return 1
