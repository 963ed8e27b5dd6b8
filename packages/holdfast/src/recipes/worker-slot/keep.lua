--[[
  recipes/worker-slot/keep: begin the lease of a number anew, with its rest after it, and note until when it may be in use.

  As permits/extend, of a lease that is longer here than where it is held: a number whose holder is not heard of any more
  rests for the difference before anybody else gets it. What the holder's own clock can show at the end is noted for the
  next holder, which begins after it whatever its own clock shows; what was noted before stays beside it for as long as the
  same grant lasts. A note never goes back but by recipes/worker-slot/end.

  KEYS[1] state    hash: capacity, declared, used, top, free, first, until, keepMs; owner -> grant of each holder
  KEYS[2] fence    string, last token issued
  KEYS[3] holders  sorted set, owner of a holder -> end of its lease, in microseconds of the server's clock
  KEYS[4] slots    sorted set, free slot numbers below top
  KEYS[5] ends     hash, number -> `<end> <token> <end before>`, by the clocks of the holders, in ms since 1970
  ARGV[1] owner    id of the claim that was granted
  ARGV[2] token    token of the grant
  ARGV[3] leaseMs  length of the lease and its rest, counted from now
  ARGV[4] untilMs  what the holder's clock shows at the end of the lease, in ms since 1970
  RENEWS
  REPLY   1        extended
          2        unclaimed: it had ended, and nobody was granted since
          3        claimed: it had ended, and somebody else was granted since
          4        forgotten: the server does not know that it ever was
]]
local owner, token, leaseMs, untilMs = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

-- include permits-state
-- include permits
-- include why-lost
if record and isUnder(record, token) then
  -- A full server accepts this first write, and then the others (docs/adr/135).
  redis.call('HDEL', KEYS[1], '')
  mend()
  if redis.call('ZSCORE', KEYS[3], owner) - now > 0 then
    lengthen(leaseMs)
    keepLease(owner, now + leaseMs * 1000)
    local number = string.match(record, '^%d+/%d+/(%d+)')
    local last, by, before = string.match(redis.call('HGET', KEYS[5], number) or '0 0 0', '^(%d+) (%d+) (%d+)$')
    if by ~= token then
      before = last
    end
    local latest = math.max(tonumber(last), untilMs)
    redis.call('HSET', KEYS[5], number, string.format('%.0f ', latest) .. token .. ' ' .. before)
    -- Clocks that differ by more than a day are nobody's.
    if redis.call('PTTL', KEYS[5]) - leaseMs < 86400000 then
      redis.call('PEXPIRE', KEYS[5], leaseMs + 90000000)
    end
    return 1
  end
end
return whyLost(nil, token)
