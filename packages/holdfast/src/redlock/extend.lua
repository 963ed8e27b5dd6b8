--[[
  redlock/extend: begin the lease on this server anew, if it is still ours. Never makes a lock that has ended.

  Comparing and extending are one step, so that a lease which ends in between cannot lengthen the next holder's. The
  fence goes with it: it has to outlive the lease by far, see docs/adr/092-tokens-on-a-quorum.md.

  KEYS[1] lock     string, owner of the claim that holds on this server; expires with its lease
  KEYS[2] fence    string, number that this server stands at
  ARGV[1] owner    id of the attempt that was granted
  ARGV[2] leaseMs  length of the lease, counted from now
  REPLY   1        extended
          2        unheld: it had ended, or was never taken here
]]
local owner, leaseMs = ARGV[1], ARGV[2]

if redis.call('GET', KEYS[1]) ~= owner then
  return 2
end
-- include begin-anew
redis.call('PEXPIRE', KEYS[2], beginAnew(leaseMs))
return 1
