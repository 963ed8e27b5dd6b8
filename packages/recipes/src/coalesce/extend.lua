--[[
  recipes/coalesce/extend: renew the lease if the claim still holds it.

  KEYS[1] lock     string, owner of the claim that runs; expires with its lease
  KEYS[2] fence    string, last token issued
  KEYS[3] run      hash, see recipes/coalesce/acquire
  ARGV[1] owner    id of the claim that was granted
  ARGV[2] token    token of its grant
  ARGV[3] leaseMs  length of the lease, counted from now
  RENEWS
  REPLY   1        extended
          2        unclaimed: the lease had ended, and no claim has been granted since
          3        claimed: the lease had ended, and another claim has been granted since
          4        forgotten: the server has no record of the grant
]]
local owner, token, leaseMs = ARGV[1], ARGV[2], ARGV[3]

-- include extend-lease
local isExtended, restMs = extendLease(owner, token, leaseMs)
if isExtended then
  redis.call('PEXPIRE', KEYS[3], restMs + 600000)
  return 1
end

-- include why-lost
return whyLost(redis.call('GET', KEYS[1]), token)
