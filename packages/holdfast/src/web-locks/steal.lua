--[[
  web-locks/steal: end all holds of a read-write lock, and grant it to the caller before all waiters.

  This is one atomic step, so that no waiter is granted the lock between the end of the old holds and the new grant.
  The queue stays as it is. Up to 10,000 former holders are notified; any others notice the loss at their next renewal.
  A repeated request from the current holder gets the same reply, because the first reply may have been lost. The lock
  remembers its last steals, so that a late copy of an earlier request does not end the holds that came after it.
  During a pause nothing is granted, so nothing is ended either.

  KEYS[1] state     hash: capacity, declared, used, top, free, first, until, keepMs; owner -> grant of each holder
  KEYS[2] fence     string, last token issued
  KEYS[3] holders   sorted set, owner of a holder -> end of its lease, in microseconds of the server's clock
  KEYS[4] slots     sorted set, free slot numbers below top
  KEYS[5] queue     sorted set, owner of a waiting claim -> arrival number
  KEYS[6] pause     string, the current pause, during which nothing is granted; expires at its end
  KEYS[7] steals    string, owners of the last claims that stole the lock, newest first
  ARGV[1] owner     id of this claim
  ARGV[2] leaseMs   length of the lease
  ARGV[3] weight    number of permits: all of them
  ARGV[4] inbox     prefix of inbox channels; a client's channel is the prefix plus the client id
  ARGV[5] note      text appended to the message to each former holder; may be empty
  GRANTS  by itself
  REPLY   token                          granted
          {0}                            over: this claim stole the lock before, and has lost it since
          {1, restMs, nowUs, pauses...}  refused: the lock is paused; restMs is the remaining time of the pause
]]
local owner, leaseMs, weight, inbox, note = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]
local numbered = 0

-- include notify
-- include notify-holder
-- include permits-state
-- include permits
-- include permits-grant
if capacity == 0 then
  begin(weight, ',' .. weight .. ',')
end
reap()
losePlaces()

if record then
  -- Do not shorten the lease, because this request may be a late copy that arrives after an extension.
  lengthen(leaseMs)
  redis.call('HSET', KEYS[1], owner, confirmed(record))
  keepLease(owner, now + leaseMs * 1000)
  return tonumber(string.match(record, '^%d+/(%d+)'))
end

local steals = redis.call('GET', KEYS[7]) or ''
if string.find(steals, owner .. ',', 1, true) then
  grantHeads()
  return {0}
end
local pause = redis.call('GET', KEYS[6])
if pause then
  return {1, redis.call('PTTL', KEYS[6]), now, pause}
end

local ended = redis.call('ZRANGE', KEYS[3], 0, 9999)
begin(capacity, state[2] or ',' .. weight .. ',')
local token = nextToken()
grantTo(owner, weight, leaseMs, token, '')
redis.call('SET', KEYS[2], token, 'PX', keptMs())
-- Keep 500 bytes, about ten owner ids, for 10 minutes. No request stays in flight for that long.
redis.call('SET', KEYS[7], string.sub(owner .. ',' .. steals, 1, 500), 'PX', 600000)
for _, holder in ipairs(ended) do
  local client, number = string.match(holder, '^([^/]+)/(%d+)/%d+/%d+')
  if client then
    notifyHolder(inbox, client, '-' .. number .. note)
  end
end
return token
