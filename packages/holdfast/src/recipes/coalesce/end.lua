--[[
  recipes/coalesce/end: a run has ended; tell those who join it with what, and grant the next caller.

  Whoever ends a run does not know whether anybody has joined, and a value may be large: it is asked for only then. A run that was
  asked to end, and did, has found nothing; and one that never came to its work has not begun: those who joined wait for the next.

  KEYS[1] lock     string, owner of the claim that runs
  KEYS[2] fence    string, last token issued
  KEYS[3] waiting  sorted set, see recipes/coalesce/acquire
  KEYS[4] joining  sorted set, see there
  KEYS[5] run      hash, see there
  ARGV[1] owner    id of the claim
  ARGV[2] token    of its grant
  ARGV[3] inbox    what a client id is appended to for the channel that the client listens on
  ARGV[4] state    how it ended: done, failed, bare (done, without its value), superseded (asked to end, and did) or unbegun (begun
                   here perhaps, but not its work); empty at first
  ARGV[5] value    what those who join get
  GRANTS  by hand-off
  REPLY   1        released
          2        unclaimed: it had ended, and nobody was granted since
          3        claimed: it had ended, and somebody else was granted since
          4        forgotten: the server does not know that it ever was
          5        wanted: somebody may have joined; nothing was done, and it is to be sent again with the value
]]
local owner, token, inbox, state, value = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- include tell
-- include coalesce-next
local holder = redis.call('GET', KEYS[1])
if holder == owner then
  -- A full server accepts this first write, and then the others (docs/adr/135).
  redis.call('HDEL', KEYS[5], '')
  local run = redis.call('HMGET', KEYS[5], 'begun', 'covers', 'before', 'beforeBy', 'back')
  local joined, isWanted = {}, false
  if run[1] == token and state == 'unbegun' then
    redis.call('HSET', KEYS[5], 'begun', '', 'arrival', run[3] or '0', 'by', run[4] or '')
  elseif run[1] == token and state ~= 'superseded' then
    joined = redis.call('ZRANGEBYSCORE', KEYS[4], 0, run[2], 'LIMIT', 0, 10000)
    -- Of one that was put back, this server may not know yet who has joined it.
    isWanted = joined[1] or run[5] == token
  end
  if isWanted then
    if state == '' then
      return 5
    end
    redis.call('HSET', KEYS[5], 'covered', run[2], 'state', state, 'value', value)
    for _, waiter in ipairs(joined) do
      local client, number = string.match(waiter, '^([^/]+)/(%d+)/')
      if client then
        tell(inbox .. client, '~' .. number)
      end
    end
    redis.call('ZREMRANGEBYSCORE', KEYS[4], 0, run[2])
  end
  local time = redis.call('TIME')
  if not handOff(inbox, time[1] * 1000000 + time[2]) then
    redis.call('DEL', KEYS[1])
  end
  return 1
end

-- include why-lost
return whyLost(holder, token)
