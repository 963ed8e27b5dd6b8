--[[
  permits/release: release permits if they are still ours, and grant them to waiters.

  This is one atomic step, so that permits are never free while the head of the queue fits. A release frees permits
  only if their grant is on record, and only as many as the grant took, so a second release frees none.

  KEYS[1] state     hash: capacity, declared, used, top, free, first, until, keepMs; owner -> grant of each holder
  KEYS[2] fence     string, last token issued
  KEYS[3] holders   sorted set, owner of a holder -> end of its lease, in microseconds of the server's clock
  KEYS[4] slots     sorted set, free slot numbers below top
  KEYS[5] queue     sorted set, owner of a waiting claim -> arrival number
  KEYS[6] pause     string, the current pause, during which nothing is granted; expires at its end
  ARGV[1] owner     id of the claim that was granted
  ARGV[2] token     token of the grant
  ARGV[3] inbox     prefix of inbox channels: the channel of a client is this plus its client id
  ARGV[4] numbered  grants up to this weight get slot numbers; 0 for none
  GRANTS  by hand-off
  REPLY   1         released
          2         unclaimed: the lease has ended, and nothing has been granted since
          3         claimed: the lease has ended, and another claim has been granted since
          4         forgotten: the server has no record of the grant
]]
local owner, token, inbox, numbered = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

-- include permits-state
if record and first - now > 0 then
  -- Handles the common case before the functions below are defined: no claim is waiting, no lease has ended, and
  -- releasing leaves no gap in the slot numbers.
  local weight, last, slots = string.match(record, '^(%d+)/(%d+)/([%d,]*)/?!?$')
  local rest = used - (weight or 0)
  if last and last - token == 0 and (slots == '' or rest == 0) and free == 0
    and redis.call('EXISTS', KEYS[5]) == 0 then
    redis.call('HDEL', KEYS[1], owner)
    redis.call('ZREM', KEYS[3], owner)
    if slots == '' then
      redis.call('HSET', KEYS[1], 'used', rest)
    else
      redis.call('HSET', KEYS[1], 'used', 0, 'top', 0)
    end
    return 1
  end
end

-- include notify
-- include permits
-- include permits-grant
-- include why-lost
-- Do this write first. The server accepts it even when out of memory, and then accepts all later writes of this
-- script (docs/adr/135).
redis.call('HDEL', KEYS[1], '')
reap()
local isHeld = record and isUnder(record, token)
if isHeld then
  giveBack(owner, record)
end
grantHeads()
return isHeld and 1 or whyLost(nil, token)
