--[[
  permits/extend: renew the lease if it is still ours; a claim also uses this to check that it still holds permits.

  A lease that has ended stays ended, even if no script has freed its permits yet. Never shortens a lease, because this
  request may be a late copy that arrives after a longer extension. The script also confirms a grant that was sent by
  message, as mutex/extend does. Other holders are not affected.

  KEYS[1] state    hash: capacity, declared, used, top, free, first, until, keepMs; owner -> grant of each holder
  KEYS[2] fence    string, last token issued
  KEYS[3] holders  sorted set, owner of a holder -> end of its lease, in microseconds of the server's clock
  KEYS[4] slots    sorted set, free slot numbers below top
  ARGV[1] owner    id of the claim that was granted
  ARGV[2] token    token of the grant
  ARGV[3] leaseMs  length of the lease, counted from now
  RENEWS
  REPLY   1        extended
          2        unclaimed: the lease has ended, and nothing has been granted since
          3        claimed: the lease has ended, and another claim has been granted since
          4        forgotten: the server has no record of the grant
]]
local owner, token, leaseMs = ARGV[1], ARGV[2], tonumber(ARGV[3])

-- include permits-state
if record and first - now > 0 and keepUntil - now >= math.max(keepMs, leaseMs + 60000) * 1000
  and token - string.match(record, '/(%d+)') == 0 then
  -- Do this write first. The server accepts it even when out of memory, and then accepts all later writes of this
  -- script (docs/adr/135).
  redis.call('HDEL', KEYS[1], '')
  if string.byte(record, -1) == 33 then
    redis.call('HSET', KEYS[1], owner, string.sub(record, 1, -3))
  end
  if redis.call('ZADD', KEYS[3], 'GT', 'inf', '-', now + leaseMs * 1000, owner) == 2 then
    redis.call('PEXPIRE', KEYS[3], math.floor((keepUntil - now) / 1000))
    redis.call('HSET', KEYS[1], 'first', 0)
  end
  return 1
end

-- include permits
-- include why-lost
if record and isUnder(record, token) then
  redis.call('HDEL', KEYS[1], '')
  mend()
  if redis.call('ZSCORE', KEYS[3], owner) - now > 0 then
    lengthen(leaseMs)
    redis.call('HSET', KEYS[1], owner, confirmed(record))
    keepLease(owner, now + leaseMs * 1000)
    return 1
  end
end
return whyLost(nil, token)
