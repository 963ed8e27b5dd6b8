--[[
  election/extend: renew the leader's lease if the claim still leads, and extend the expiry of the leader's record.

  KEYS[1] lock     string, owner id of the leader; expires with its lease
  KEYS[2] fence    string, last term
  KEYS[3] handed   string, client whose grant by message is not confirmed yet
  KEYS[4] record   hash: term, value, owner and number of the last proclamation, and terms, the number of terms
  ARGV[1] owner    id of the claim that leads
  ARGV[2] term     its term
  ARGV[3] leaseMs  length of the lease, counted from now
  RENEWS
  REPLY   1        extended
          2        unclaimed: the lease had ended, and no claim has led since
          3        claimed: the lease had ended, and another claim has led since
          4        forgotten: the server has no record of the term
]]
local owner, term, leaseMs = ARGV[1], ARGV[2], ARGV[3]

-- include extend-lease
local isExtended, restMs = extendLease(owner, term, leaseMs)
if isExtended then
  redis.call('DEL', KEYS[3])
  redis.call('PEXPIRE', KEYS[4], restMs + 600000)
  return 1
end

-- include why-lost
return whyLost(redis.call('GET', KEYS[1]), term)
