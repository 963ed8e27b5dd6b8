--[[
  condition/wait: release the mutex to its next waiter, and make a new claim wait for a signal.

  This is one atomic step, so that no signal can come in between. A repeated request with the same new claim changes
  nothing. A claim that is no longer in the condition's queue was signaled, or was dropped because its inbox had no
  subscriber. Either way, it continues by acquiring the mutex, because an unnecessary wake-up does no harm, but a lost
  signal does.

  KEYS[1] lock       string, owner id of the holder; expires with its lease
  KEYS[2] fence      string, last token issued
  KEYS[3] queue      sorted set, owner of a claim that waits for the mutex -> arrival number
  KEYS[4] handed     string, client whose grant by message is not confirmed yet
  KEYS[5] pause      string, the current pause, during which nothing is granted; expires at its end
  KEYS[6] condition  sorted set, owner of a claim that waits for a signal -> arrival number
  ARGV[1] from       id of the claim that holds the mutex
  ARGV[2] token      token of its grant
  ARGV[3] owner      id of the claim that waits
  ARGV[4] again      1 if this claim may have entered the queue before, 0 if it certainly has not
  ARGV[5] inbox      prefix of inbox channels; a client's channel is the prefix plus the client id
  GRANTS  by hand-off
  REPLY   {0, restMs, nowUs}  waiting: for a signal (restMs is -1), or for the mutex, whose lease ends in restMs
          {1, restMs, nowUs}  signalled, or dropped from the queue; the claim may now acquire the mutex
          {2}                 unclaimed: the holder's lease has ended, and nothing has been granted since
          {3}                 claimed: the holder's lease has ended, and another claim has been granted since
          {4}                 forgotten: the server has no record of the lease
]]
local from, token, owner, again, inbox = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

-- include notify
-- include hand-off
-- include holds
-- include why-lost
if holds(from, token) then
  local latest = redis.call('ZREVRANGE', KEYS[6], 0, 0, 'WITHSCORES')[2] or 0
  redis.call('ZADD', KEYS[6], math.max(latest + 1, now), owner)
  redis.call('PEXPIRE', KEYS[6], 60000)
  if not handOff(inbox, nil, now) then
    redis.call('DEL', KEYS[1], KEYS[4])
  end
  return {0, -1, now}
end

if redis.call('ZSCORE', KEYS[6], owner) then
  -- Waiters ask again every few seconds. If none does for 60 s, their processes are gone, so the queue may expire.
  redis.call('PEXPIRE', KEYS[6], 60000)
  return {0, -1, now}
end

local holder = redis.call('GET', KEYS[1])
local isQueued = redis.call('ZSCORE', KEYS[3], owner)
if isQueued and holder then
  redis.call('PEXPIRE', KEYS[3], 60000)
  -- include recall
  return {0, redis.call('PTTL', KEYS[1]), now}
end
if again == '1' or isQueued or holder == owner then
  return {1, redis.call('PTTL', KEYS[1]), now}
end
return {whyLost(holder, token)}
