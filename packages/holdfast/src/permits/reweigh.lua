--[[
  permits/reweigh: change how many permits a holder has, without a moment in which it has none.

  Fewer, and whoever fits is granted at once, with the same token for the holder. More, and only if they are free
  now, with a new token: nobody ever waits for this while holding, so two who want more cannot wait for each other.
  Changes of one lease are numbered: sent again, the last one gives its first answer, and an earlier one that
  arrives late changes nothing.

  KEYS[1] state     hash: capacity, declared, used, top, free, first, until, keepMs; owner -> grant of each holder
  KEYS[2] fence     string, last token issued
  KEYS[3] holders   sorted set, owner of a holder -> end of its lease, in microseconds of the server's clock
  KEYS[4] slots     sorted set, free slot numbers below top
  KEYS[5] queue     sorted set, owner of a waiting claim -> arrival number
  KEYS[6] pause     string, the pause that keeps everybody from being granted; expires at its end
  ARGV[1] owner     id of the claim that was granted
  ARGV[2] token     token of the grant
  ARGV[3] weight    how many permits it shall have, 1 or more
  ARGV[4] change    number of the change, higher than that of the one before
  ARGV[5] inbox     what a client id is appended to for the channel that the client listens on
  ARGV[6] numbered  the heaviest grant whose permits are numbered; 0 for none
  GRANTS  by itself
  REPLY   0            refused: others hold what it would need
          {1, latest}  reweighed; the token that the holder has now
          2            unclaimed: it had ended, and nobody was granted since
          3            claimed: it had ended, and somebody else was granted since
          4            forgotten: the server does not know that it ever was
]]
local owner, token, weight, change = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local inbox, numbered = ARGV[5], tonumber(ARGV[6])

-- include tell
-- include permits-state
-- include permits
-- include permits-grant
-- include why-lost
-- A full server accepts this first write, and then the others (docs/adr/135).
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
