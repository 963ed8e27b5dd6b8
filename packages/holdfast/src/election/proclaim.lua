--[[
  election/proclaim: store the leader's value if it still leads, and notify all observers.

  The value is stored with the term, so that it is never mistaken for the value of a later leader. A late copy of an
  earlier proclamation of the same leader does nothing. The first proclamation of a term increases the number of terms.

  KEYS[1] lock     string, owner id of the leader; expires with its lease
  KEYS[2] fence    string, last term
  KEYS[3] record   hash: term, value, owner and number of the last proclamation, and terms, the number of terms
  ARGV[1] owner    id of the claim that leads
  ARGV[2] term     its term
  ARGV[3] value    its new value
  ARGV[4] number   number of this proclamation; rises with each proclamation of the claim
  ARGV[5] leaseMs  length of its lease
  ARGV[6] channel  channel of the observers
  REPLY   1        proclaimed
          2        unclaimed: the lease had ended, and no claim has led since
          3        claimed: the lease had ended, and another claim has led since
          4        forgotten: the server has no record of the term
]]
local owner, term, value, number, leaseMs, channel = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

-- include holds
-- include why-lost
if not holds(owner, term) then
  return whyLost(redis.call('GET', KEYS[1]), term)
end
local last = redis.call('HMGET', KEYS[3], 'owner', 'number', 'term', 'terms')
if last[1] ~= owner or number - last[2] > 0 then
  local terms = tonumber(last[4] or 0)
  if last[3] ~= term then
    terms = terms + 1
  end
  redis.call('HSET', KEYS[3], 'term', term, 'value', value, 'owner', owner, 'number', number, 'terms', terms)
  redis.call('PEXPIRE', KEYS[3], math.max(redis.call('PTTL', KEYS[1]), tonumber(leaseMs)) + 600000)
  redis.pcall('PUBLISH', channel, 'changed')
end
return 1
