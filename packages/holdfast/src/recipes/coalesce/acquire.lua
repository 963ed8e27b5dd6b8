--[[
  recipes/coalesce/acquire: run now if nobody runs; otherwise wait, and hear what has become of the wait.

  Who came before a call that has begun is superseded by it, or, if it would join, waits for what that one finds. Both are told
  by comparing arrivals, never by who stands where: whoever was taken for gone keeps its arrival, and so neither overtakes a
  newer caller nor is lost. Sent again with the same owner it gives the same answer.

  KEYS[1] lock     string, owner of the claim that runs; expires with its lease
  KEYS[2] fence    string, last token issued
  KEYS[3] waiting  sorted set, owner of a claim that waits to be the newest -> arrival, in microseconds, each later than all before
  KEYS[4] joining  sorted set, owner of a claim that would join another's run -> arrival
  KEYS[5] run      hash: granted, at (its arrival), cancel (who asked it to end); of the last call that began: begun (its token), by
                   (its owner), arrival, covers (who joins has arrived until then), before and beforeBy (arrival and owner of the one that
                   began before it), back (its token, if a failover had lost it and it was put back); of the last one that others joined:
                   covered, state, value
  ARGV[1] owner    id of this claim
  ARGV[2] leaseMs  length of its lease
  ARGV[3] joins    1 if it would join, 0 if the newest is to win
  ARGV[4] arrival  what an earlier answer said; 0 if there was none
  ARGV[5] ageUs    how long ago it should have arrived at the latest; 0 if its first request was answered in time
  ARGV[6] enqueue  1 if it may wait; 0 if its client has no inbox or does not wait
  ARGV[7] cancel   1 to ask whoever runs to end, if that one came before this call
  ARGV[8] inbox    what a client id is appended to for the channel that the client listens on
  GRANTS  by itself
  REPLY   {0, token, arrival}          granted
          {1, restMs, nowUs, arrival}  waiting: the present lease ends in restMs
          {2, restMs, nowUs, arrival}  refused, and does not wait
          {3, begunUs, by...}          superseded: a later call has begun, by that owner, and counts as having arrived then
          {4, words...}                joined: how the run ended, and with what
]]
local owner, leaseMs, joins, ageUs, enqueue, inbox = ARGV[1], ARGV[2], ARGV[3] == '1', ARGV[5], ARGV[6], ARGV[8]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local holder = redis.call('GET', KEYS[1])
if holder == owner then
  -- The first reply or the message was lost. The lease is never shortened: this may be a late copy.
  if redis.call('PTTL', KEYS[1]) - leaseMs < 0 then
    redis.call('PEXPIRE', KEYS[1], leaseMs)
  end
  return {0, tonumber(redis.call('GET', KEYS[2]) or now), tonumber(redis.call('HGET', KEYS[5], 'at') or now)}
end

-- include tell
-- include tell-holder
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
-- Who was cut off is no newer for it.
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
  -- Waiters ask again every few seconds; a queue that nobody asks about belongs to processes that are gone.
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
    -- What has not begun yet will be joined.
    isOlder = isOlder and run[9] == redis.call('GET', KEYS[2]) and arrival - (run[3] or 0) > 0
  end
  if ARGV[7] == '1' and isOlder and not run[8] then
    redis.call('HSET', KEYS[5], 'cancel', owner)
    local client, number = string.match(holder, '^([^/]+)/(%d+)/')
    if client then
      tellHolder(inbox, client, '~' .. number)
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
