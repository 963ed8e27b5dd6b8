--[[
  mutex/extend: renew the lease if it is still ours; a claim also uses this to check that it still holds the mutex.

  Comparing and extending are one atomic step, so that this cannot extend the next holder's lease. The script also
  compares the token, because the same claim may have been granted twice, and only the later grant is valid. It never
  shortens a lease, because the request may be a late copy that arrives after a longer extension. A holder that was
  granted the mutex by message also confirms the grant with this script; see lua/hand-off.

  KEYS[1] lock     string, owner id of the holder; expires with its lease
  KEYS[2] fence    string, last token issued
  KEYS[3] handed   string, client whose grant by message is not confirmed yet
  ARGV[1] owner    id of the claim that was granted
  ARGV[2] token    last token of its block
  ARGV[3] leaseMs  length of the lease, counted from now
  RENEWS
  REPLY   1        extended
          2        unclaimed: the lease has ended, and nothing has been granted since
          3        claimed: the lease has ended, and another claim has been granted since
          4        forgotten: the server has no record of the grant
]]
local owner, token, leaseMs = ARGV[1], ARGV[2], ARGV[3]

-- include extend-lease
if extendLease(owner, token, leaseMs) then
  redis.call('DEL', KEYS[3])
  return 1
end

-- include why-lost
return whyLost(redis.call('GET', KEYS[1]), token)
