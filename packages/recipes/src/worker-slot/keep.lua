--[[
  recipes/worker-slot/keep: renew the lease of a number, including its rest time, and note when its use may end.

  Works like permits/extend, but the lease lasts longer here than the holder assumes. So if a holder crashes, its number
  stays unused for the rest time after the lease has ended for the holder. The script notes the time that the holder's
  own clock shows at the end of the lease. The next holder begins after that time, whatever its own clock shows. The
  note of the previous holder is kept beside the new one while the grant lasts. Only recipes/worker-slot/end can set a
  note to an earlier time.

  KEYS[1] state    hash: capacity, declared, used, top, free, first, until, keepMs; owner -> grant of each holder
  KEYS[2] fence    string, last token issued
  KEYS[3] holders  sorted set, owner of a holder -> end of its lease, in microseconds of the server's clock
  KEYS[4] slots    sorted set, free slot numbers below top
  KEYS[5] ends     hash, number -> `<end> <token> <end before>`; ends are in ms since 1970 on the holders' clocks
  ARGV[1] owner    id of the claim that was granted
  ARGV[2] token    token of the grant
  ARGV[3] leaseMs  length of the lease and its rest time, counted from now
  ARGV[4] untilMs  what the holder's clock shows at the end of the lease, in milliseconds since 1970
  RENEWS
  REPLY   1        extended
          2        unclaimed: the lease had ended, and no claim was granted since
          3        claimed: the lease had ended, and another claim was granted since
          4        forgotten: the server has no record of the grant
]]
local owner, token, leaseMs, untilMs = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

-- include permits-state
-- include permits
-- include why-lost
if record and isUnder(record, token) then
  -- A server at its memory limit accepts this command, and then all later writes of this script (docs/adr/135).
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
    -- Keep the notes for more than a day after the lease, because clocks are assumed to differ by less than a day.
    if redis.call('PTTL', KEYS[5]) - leaseMs < 86400000 then
      redis.call('PEXPIRE', KEYS[5], leaseMs + 90000000)
    end
    return 1
  end
end
return whyLost(nil, token)
