--[[
  recipes/coalesce/end: end a run, pass its result to claims that joined it, and grant the next claim.

  The client does not know whether any claim has joined, and the value may be large, so it sends the value only on
  request. A run that was asked to end and did so has no result, and a run whose work was not called has not begun:
  in both cases, claims that joined wait for the next run.

  KEYS[1] lock     string, owner of the claim that runs
  KEYS[2] fence    string, last token issued
  KEYS[3] waiting  sorted set, see recipes/coalesce/acquire
  KEYS[4] joining  sorted set, see recipes/coalesce/acquire
  KEYS[5] run      hash, see recipes/coalesce/acquire
  ARGV[1] owner    id of the claim
  ARGV[2] token    token of its grant
  ARGV[3] inbox    prefix of inbox channels; a client id is appended to get the channel of that client
  ARGV[4] state    how the run ended: done, failed, bare (done, without its value), superseded (asked to end, and did
                   so) or unbegun (its work was not called, even if the call may have begun here); empty if the run has
                   a result that this script has not asked for yet
  ARGV[5] value    value or error for claims that joined
  GRANTS  by hand-off
  REPLY   1        released
          2        unclaimed: the lease had ended, and no claim has been granted since
          3        claimed: the lease had ended, and another claim has been granted since
          4        forgotten: the server has no record of the grant
          5        wanted: a claim may have joined; nothing was done, and the client must send the request again with
                   the value
]]
local owner, token, inbox, state, value = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- include notify
-- include coalesce-next
local holder = redis.call('GET', KEYS[1])
if holder == owner then
  -- A server at its memory limit accepts this command, and then all later writes of this script (docs/adr/135).
  redis.call('HDEL', KEYS[5], '')
  local run = redis.call('HMGET', KEYS[5], 'begun', 'covers', 'before', 'beforeBy', 'back')
  local joined, isWanted = {}, false
  if run[1] == token and state == 'unbegun' then
    redis.call('HSET', KEYS[5], 'begun', '', 'arrival', run[3] or '0', 'by', run[4] or '')
  elseif run[1] == token and state ~= 'superseded' then
    joined = redis.call('ZRANGEBYSCORE', KEYS[4], 0, run[2], 'LIMIT', 0, 10000)
    -- If the run was restored after a failover, this server may not know yet which claims have joined it.
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
        notify(inbox .. client, '~' .. number)
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
