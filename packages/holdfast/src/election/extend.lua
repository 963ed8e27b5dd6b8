--[[
  election/extend: begin the leader's lease anew, if it is still its own, and keep its value as long.

  KEYS[1] lock     string, owner of the claim that leads; expires with its lease
  KEYS[2] fence    string, last term
  KEYS[3] handed   string, client that was granted by message and has not confirmed
  KEYS[4] record   hash, term, value, owner and number of the last proclamation, and how many terms there were
  ARGV[1] owner    id of the claim that leads
  ARGV[2] term     its term
  ARGV[3] leaseMs  length of the lease, counted from now
  RENEWS
  REPLY   1        extended
          2        unclaimed: it had ended, and nobody leads since
          3        claimed: it had ended, and somebody else has led since
          4        forgotten: the server does not know that it ever led
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
