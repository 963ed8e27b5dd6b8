--[[
  permits/confirm: confirm many grants that were sent by message and renew their leases, each as in permits/extend.

  When a writer releases a read-write lock, a thousand readers of one process may be granted the lock together.
  Confirming the grants one by one would cost the server many times more than this one request. Each grant is confirmed
  or refused independently of the others.

  KEYS[1] state    hash: capacity, declared, used, top, free, first, until, keepMs; owner -> grant of each holder
  KEYS[2] fence    string, last token issued
  KEYS[3] holders  sorted set, owner of a holder -> end of its lease, in microseconds of the server's clock
  KEYS[4] slots    sorted set, free slot numbers below top
  ARGV[1] grants   for each grant: id of the claim that was granted, token, and length of the lease, counted from now;
                   separated by spaces, which no id contains
  RENEWS
  REPLY   {1, refused...}  confirmed: all grants, except those whose positions are in refused; the first has position 1
]]
local owner = ''

-- include permits-state
-- include permits
-- Do this write first. The server accepts it even when out of memory, and then accepts all later writes of this
-- script (docs/adr/135).
redis.call('HDEL', KEYS[1], '')
mend()
local reply = {1}
local place = 0
for claim, token, leaseMs in string.gmatch(ARGV[1], '(%S+) (%S+) (%S+)') do
  place = place + 1
  local grant = redis.call('HGET', KEYS[1], claim)
  local deadline = grant and redis.call('ZSCORE', KEYS[3], claim)
  if deadline and deadline - now > 0 and isUnder(grant, token) then
    lengthen(tonumber(leaseMs))
    keepLease(claim, now + leaseMs * 1000)
    redis.call('HSET', KEYS[1], claim, confirmed(grant))
  else
    reply[#reply + 1] = place
  end
end
return reply
