--[[
  permits/adopt: move a held lease to another claim, as when one process hands its work to another.

  The token, the permits and their slot numbers stay the same, so the resource does not see the change. The first claim
  then holds nothing. A repeated request from the adopting claim gets the same reply.

  KEYS[1] state    hash: capacity, declared, used, top, free, first, until, keepMs; owner -> grant of each holder
  KEYS[2] fence    string, last token issued
  KEYS[3] holders  sorted set, owner of a holder -> end of its lease, in microseconds of the server's clock
  KEYS[4] slots    sorted set, free slot numbers below top
  ARGV[1] owner    id of the claim that takes over
  ARGV[2] from     id of the claim that held the lease
  ARGV[3] token    token of the grant
  ARGV[4] leaseMs  length of the lease, counted from now
  GRANTS  by itself
  REPLY   1        adopted
          2        unclaimed: the lease has ended, and nothing has been granted since
          3        claimed: the lease has ended, and another claim has been granted since
          4        forgotten: the server has no record of the grant
]]
local owner, from, token, leaseMs = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

-- include permits-state
-- include permits
-- include why-lost
mend()
local holder = record and owner or from
local grant = record or redis.call('HGET', KEYS[1], from)
local deadline = redis.call('ZSCORE', KEYS[3], holder)
if grant and isUnder(grant, token) and deadline and deadline - now > 0 then
  redis.call('HDEL', KEYS[1], holder)
  redis.call('ZREM', KEYS[3], holder)
  -- The record omits the number of the last change of weight, because the new claim starts its own count.
  redis.call('HSET', KEYS[1], owner, string.match(grant, '^%d+/%d+/[%d,]*/?%d*'))
  lengthen(leaseMs)
  keepLease(owner, math.max(tonumber(deadline), now + leaseMs * 1000))
  return 1
end
return whyLost(nil, token)
