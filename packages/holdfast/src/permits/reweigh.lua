--[[
  permits/reweigh: change a holder's number of permits in one step, so that it always holds at least one.

  If the number shrinks, the holder keeps its token, and waiters that fit are granted immediately. If it grows, the
  change is made only if the additional permits are free now, and the holder gets a new token. A holder never waits for
  more, so two holders that want more cannot deadlock. Each change of a lease has a number. A repeated request for
  the latest change gets the same reply, or is decided again if it was refused. A late copy of an earlier change does
  nothing.

  KEYS[1] state     hash: capacity, declared, used, top, free, first, until, keepMs; owner -> grant of each holder
  KEYS[2] fence     string, last token issued
  KEYS[3] holders   sorted set, owner of a holder -> end of its lease, in microseconds of the server's clock
  KEYS[4] slots     sorted set, free slot numbers below top
  KEYS[5] queue     sorted set, owner of a waiting claim -> arrival number
  KEYS[6] pause     string, the current pause, during which nothing is granted; expires at its end
  ARGV[1] owner     id of the claim that was granted
  ARGV[2] token     token of the grant
  ARGV[3] weight    new number of permits, 1 or more
  ARGV[4] change    number of the change, higher than that of the previous change
  ARGV[5] inbox     prefix of inbox channels: the channel of a client is this plus its client id
  ARGV[6] numbered  grants up to this weight get slot numbers; 0 for none
  GRANTS  by itself
  REPLY   0            refused: too few permits are free, or this is a late copy of an earlier change
          {1, latest}  reweighed; latest is the holder's current token
          2            unclaimed: the lease has ended, and nothing has been granted since
          3            claimed: the lease has ended, and another claim has been granted since
          4            forgotten: the server has no record of the grant
]]
local owner, token, weight, change = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local inbox, numbered = ARGV[5], tonumber(ARGV[6])

-- include notify
-- include permits-state
-- include permits
-- include permits-grant
-- include why-lost
-- Do this write first. The server accepts it even when out of memory, and then accepts all later writes of this
-- script (docs/adr/135).
redis.call('HDEL', KEYS[1], '')
reap()
if not record or not isUnder(record, token) then
  grantHeads()
  return whyLost(nil, token)
end

local held, latest, slots, first, last = string.match(confirmed(record), '^(%d+)/(%d+)/([%d,]*)/?(%d*)/?(%d*)$')
local more = weight - held
if first == '' then
  first = latest
end
local isLate = change - tonumber(last == '' and 0 or last) < 0
if isLate or (more > 0 and used + more > capacity) then
  grantHeads()
  return 0
end
if more > 0 then
  latest = nextToken()
  lastToken = latest
  redis.call('SET', KEYS[2], latest, 'PX', keptMs())
end
if more ~= 0 then
  used = used + more
end
redis.call('HSET', KEYS[1], 'used', used,
  owner, string.format('%.0f/%.0f/%s/%s/%.0f', weight, latest, slots, first, change))
grantHeads()
return {1, tonumber(latest)}
