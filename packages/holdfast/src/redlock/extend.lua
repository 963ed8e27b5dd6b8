--[[
  redlock/extend: begin the lease on this server anew, if it is still ours. Never makes a lock that has ended.

  Comparing and extending are one step, so that a lease which ends in between cannot lengthen the next holder's. Held by
  the same owner is not enough, as in redlock/confirm: a late copy of the acquire may have taken the lock again after
  somebody else has had it, and then the server stands at another number. The fence goes with the lease: it has to outlive
  it by far, see docs/adr/092-tokens-on-a-quorum.md.

  KEYS[1] lock      string, owner of the claim that holds on this server; expires with its lease
  KEYS[2] fence     string, number that this server stands at
  ARGV[1] owner     id of the attempt that was granted
  ARGV[2] standing  number that this server is known to stand at for it: what it reported, or the token to which it was
                    raised; 0 if that is not known
  ARGV[3] leaseMs   length of the lease, counted from now
  REPLY   1         extended
          2         unheld: it had ended, or was never taken here, or may have been somebody else's since
]]
local owner, standing, leaseMs = ARGV[1], ARGV[2], ARGV[3]

if redis.call('GET', KEYS[1]) ~= owner then
  return 2
end
local last = redis.call('GET', KEYS[2])
if last and last - standing ~= 0 then
  return 2
end
-- include begin-anew
redis.call('PEXPIRE', KEYS[2], beginAnew(leaseMs))
return 1
