--[[
  mutex/extend: begin the lease anew, if it is still ours; also how a claim learns that it still holds.

  Comparing and extending are one step, so that a lease which ends in between cannot lengthen the next holder's.
  The token is compared too: the same claim may have been granted twice, and only the later grant is good. A
  lease is never shortened, because this request may be a late copy that arrives after a longer extension. This is also
  how the holder of a grant by message confirms it: see lua/hand-off.

  KEYS[1] lock     string, owner of the claim that holds; expires with its lease
  KEYS[2] fence    string, last token issued
  KEYS[3] handed   string, client that was granted by message and has not confirmed
  ARGV[1] owner    id of the claim that was granted
  ARGV[2] token    last token of its block
  ARGV[3] leaseMs  length of the lease, counted from now
  RENEWS
  REPLY   1        extended
          2        unclaimed: it had ended, and nobody was granted since
          3        claimed: it had ended, and somebody else was granted since
          4        forgotten: the server does not know that it ever was
]]
local owner, token, leaseMs = ARGV[1], ARGV[2], ARGV[3]

-- include extend-lease
if extendLease(owner, token, leaseMs) then
  redis.call('DEL', KEYS[3])
  return 1
end

-- include why-lost
return whyLost(redis.call('GET', KEYS[1]), token)
