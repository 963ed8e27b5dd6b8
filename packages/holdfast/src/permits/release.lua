--[[
  permits/release: give permits back, if they are still ours, to those who wait.

  One step, so that there is no moment in which permits are free while the head of the queue fits. Only a grant
  that is on record gives anything back, and only what it took: nobody can raise the capacity by releasing twice.

  KEYS[1] state     hash: capacity, declared, used, top, free, first, until, keepMs; owner -> grant of each holder
  KEYS[2] fence     string, last token issued
  KEYS[3] holders   sorted set, owner of a holder -> end of its lease, in microseconds of the server's clock
  KEYS[4] slots     sorted set, free slot numbers below top
  KEYS[5] queue     sorted set, owner of a waiting claim -> arrival number
  KEYS[6] pause     string, the pause that keeps everybody from being granted; expires at its end
  ARGV[1] owner     id of the claim that was granted
  ARGV[2] token     token of the grant
  ARGV[3] inbox     what a client id is appended to for the channel that the client listens on
  ARGV[4] numbered  the heaviest grant whose permits are numbered; 0 for none
  GRANTS  by hand-off
  REPLY   1         released
          2         unclaimed: it had ended, and nobody was granted since
          3         claimed: it had ended, and somebody else was granted since
          4         forgotten: the server does not know that it ever was
]]
local owner, token, inbox, numbered = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

-- include permits-state
if record and first - now > 0 then
  -- What it nearly always is, without the machinery below: nobody waits, no lease is over, and no number is left
  -- between those of others.
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

-- include tell
-- include permits
-- include permits-grant
-- include why-lost
-- A full server accepts this first write, and then the others (docs/adr/135).
redis.call('HDEL', KEYS[1], '')
reap()
local isHeld = record and isUnder(record, token)
if isHeld then
  giveBack(owner, record)
end
grantHeads()
return isHeld and 1 or whyLost(nil, token)
