--[[
  interop/redisson/extend: begin the lease of a lock anew, if it is still ours.

  Also of a fair lock and of a write lock, whose holder is a field of the same hash. Never makes it shorter.

  KEYS[1] lock     hash, owner -> hold count; expires with the lease
  ARGV[1] owner    field of the holder
  ARGV[2] leaseMs  length of the lease, counted from now
  RENEWS
  REPLY   1        extended
          2        forgotten: it is not ours, and nothing tells since when
]]
local owner, leaseMs = ARGV[1], ARGV[2]

if redis.call('HEXISTS', KEYS[1], owner) == 0 then
  return 2
end
if redis.call('PTTL', KEYS[1]) - leaseMs < 0 then
  redis.call('PEXPIRE', KEYS[1], leaseMs)
end
return 1
