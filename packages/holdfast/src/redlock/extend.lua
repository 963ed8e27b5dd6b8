--[[
  redlock/extend: renew the lease on this server, if it is still ours. Never retakes a lock whose lease has ended.

  Comparing and extending are one atomic step, so this script cannot extend the next holder's lease. As in
  redlock/confirm, comparing the owner is not enough: a late copy of the acquire may have taken the lock again after
  another claim held it. In that case, the server's number is different, so it is compared too. The fence is also
  extended, because it must live much longer than the lease; see docs/adr/092-tokens-on-a-quorum.md.

  KEYS[1] lock      string, owner id of the holder on this server; expires with its lease
  KEYS[2] fence     string, current number of this server
  ARGV[1] owner     id of the attempt that was granted
  ARGV[2] standing  this server's number, as far as the client knows: the one that the server reported, or the token to
                    which that number was raised; 0 if unknown
  ARGV[3] leaseMs   length of the lease, counted from now
  REPLY   1         extended
          2         unheld: the lease had ended or was never granted here, or another claim may have held the lock since
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
