--[[
  recipes/coalesce/acquire: run now if no call is running; otherwise wait, and learn how the wait ended.

  When a call begins, it supersedes all calls of mode "newest" that arrived before it. Calls of mode "join" that arrived
  before it get its result. The script compares arrivals, not places in the queue. A claim that was removed because
  its client seemed gone keeps its arrival, so it neither overtakes newer callers nor is forgotten. A retry with the
  same owner gets the same reply.

  KEYS[1] lock     string, owner of the claim that runs; expires with its lease
  KEYS[2] fence    string, last token issued
  KEYS[3] waiting  sorted set, owner of a waiting claim of mode "newest" -> arrival, in microseconds; each arrival is
                   later than all earlier ones
  KEYS[4] joining  sorted set, owner of a waiting claim of mode "join" -> arrival
  KEYS[5] run      hash with these fields:
                   - for the claim that runs: granted (its owner), at (its arrival), cancel (owner of the claim that
                     asked it to end)
                   - for the last call that began: begun (its token), by (its owner), arrival, covers (claims of mode
                     "join" that arrived by then get its result), before and beforeBy (arrival and owner of the call
                     that began before it), back (its token, if it was restored after a failover)
                   - for the last run that others joined: covered (its covers), state (how it ended), value (its value
                     or error)
  ARGV[1] owner    id of this claim
  ARGV[2] leaseMs  length of its lease
  ARGV[3] joins    1 for mode "join", 0 for mode "newest"
  ARGV[4] arrival  arrival from an earlier reply; 0 if there was none
  ARGV[5] ageUs    minimum time since the call would have arrived if no request had been lost, in microseconds; 0 if its
                   first request got a reply
  ARGV[6] enqueue  1 if the claim may wait; 0 if its client has no inbox or does not wait
  ARGV[7] cancel   1 to ask the current run to end, if its call arrived before this one
  ARGV[8] inbox    prefix of inbox channels; a client id is appended to get the channel of that client
  GRANTS  by itself
  REPLY   {0, token, arrival}          granted
          {1, restMs, nowUs, arrival}  waiting: the current lease ends in restMs
          {2, restMs, nowUs, arrival}  refused: the claim does not wait
          {3, begunUs, by...}          superseded: a later call with that arrival and owner has begun
          {4, words...}                joined: how the run ended, and its value or error
]]
local owner, leaseMs, joins, ageUs, enqueue, inbox = ARGV[1], ARGV[2], ARGV[3] == '1', ARGV[5], ARGV[6], ARGV[8]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local holder = redis.call('GET', KEYS[1])
if holder == owner then
  -- The reply or message with the grant was lost. The lease is never shortened, because this request may be a late
  -- copy.
  if redis.call('PTTL', KEYS[1]) - leaseMs < 0 then
    redis.call('PEXPIRE', KEYS[1], leaseMs)
  end
  return {0, tonumber(redis.call('GET', KEYS[2]) or now), tonumber(redis.call('HGET', KEYS[5], 'at') or now)}
end

-- include notify
-- include notify-holder
-- include coalesce-next
local run = redis.call('HMGET', KEYS[5], 'arrival', 'by', 'covers', 'covered', 'state', 'value', 'at', 'cancel', 'begun')
local function latestOf(last)
  return tonumber(last[2] or 0)
end
local arrival = redis.call('ZSCORE', KEYS[3], owner) or redis.call('ZSCORE', KEYS[4], owner)
if not arrival and ARGV[4] ~= '0' then
  arrival = ARGV[4]
end
if not arrival then
  local waiting = latestOf(redis.call('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES'))
  local joining = latestOf(redis.call('ZREVRANGE', KEYS[4], 0, 0, 'WITHSCORES'))
  local known = math.max(waiting, joining, tonumber(run[1] or 0), tonumber(run[3] or 0), tonumber(run[7] or 0))
  arrival = math.max(now, known + 1)
end
arrival = tonumber(arrival)
-- A request that arrives late because earlier ones were lost does not make the call newer.
if ageUs ~= '0' then
  arrival = math.min(arrival, now - ageUs)
end

if not joins and arrival - (run[1] or 0) < 0 then
  redis.call('ZREM', KEYS[3], owner)
  return {3, run[1], run[2]}
end
if joins and arrival - (run[4] or 0) <= 0 then
  redis.call('ZREM', KEYS[4], owner)
  return {4, run[5], run[6]}
end

if enqueue == '1' or not holder then
  local score = string.format('%.0f', arrival)
  -- Waiters re-check every few seconds, so a queue without re-checks belongs to processes that are gone.
  if joins then
    redis.call('ZADD', KEYS[4], score, owner)
    redis.call('PEXPIRE', KEYS[4], 60000)
  else
    redis.call('ZADD', KEYS[3], score, owner)
    redis.call('PEXPIRE', KEYS[3], 60000)
  end
end

if holder then
  local isOlder = arrival - (run[7] or 0) > 0
  if joins then
    -- A run that has not begun is not asked to end, because this claim will join it.
    isOlder = isOlder and run[9] == redis.call('GET', KEYS[2]) and arrival - (run[3] or 0) > 0
  end
  if ARGV[7] == '1' and isOlder and not run[8] then
    redis.call('HSET', KEYS[5], 'cancel', owner)
    local client, number = string.match(holder, '^([^/]+)/(%d+)/')
    if client then
      notifyHolder(inbox, client, '~' .. number)
    end
  end
else
  local granted, token = handOff(inbox, now, owner)
  if granted == owner then
    return {0, token, arrival}
  end
  if enqueue == '0' then
    redis.call('ZREM', KEYS[3], owner)
    redis.call('ZREM', KEYS[4], owner)
  end
end
return {enqueue == '1' and 1 or 2, redis.call('PTTL', KEYS[1]), now, arrival}
