--[[
  mutex/acquire: take the mutex if it is free and nobody waits for it; otherwise, if asked to, queue for it.

  One step, so that a holder never exists without its token, and nobody waits for a mutex that is free. Sent
  again with the same owner it gives the same answer: the first reply may have been lost. The token is the
  server's time in microseconds, or the last token + 1 if that is more, so it rises even when the fence key is
  gone or a replica without it was promoted.

  KEYS[1] lock     string, owner of the claim that holds; expires with its lease
  KEYS[2] fence    string, last token issued
  KEYS[3] queue    sorted set, owner of a waiting claim -> arrival, the time in microseconds or the last one + 1 if that is more
  KEYS[4] handed   string, client that was granted by message and has not confirmed
  KEYS[5] pause    string, the pause that keeps everybody from being granted; expires at its end
  ARGV[1] owner    id of this claim
  ARGV[2] leaseMs  length of the lease
  ARGV[3] fenceMs  how long the fence outlives the grant; sent ready, because sums become text slowly here
  ARGV[4] block    how many tokens this claim may spend, 1 or more
  ARGV[5] enqueue  1 if the claim may wait in the queue, but not begin to while there is a pause; 2 if it may in any
                   case; 0 if its client has no inbox or does not wait
  ARGV[6] inbox    what a client id is appended to for the channel that the client listens on
  GRANTS  by itself
  REPLY   token                granted; the first token of the block
          {0, restMs, nowUs, pauses...}  waiting in the queue; the present lease ends in restMs, or never if -1; the
                                         text is the pause, if there is one, which ends in restMs where nobody holds
          {1, restMs, nowUs, pauses...}  refused, and not in the queue
]]
local owner, leaseMs, fenceMs, block, enqueue, inbox = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

if redis.call('EXISTS', KEYS[1], KEYS[3], KEYS[4], KEYS[5]) == 0 then
  local time = redis.call('TIME')
  local top = time[1] * 1000000 + time[2] + block - 1
  local last = redis.call('SET', KEYS[2], top, 'PX', fenceMs, 'GET')
  if last and last + block > top then
    top = last + block
    redis.call('SET', KEYS[2], top, 'PX', fenceMs)
  end
  redis.call('PSETEX', KEYS[1], leaseMs, owner)
  return top - block + 1
end

local holder = redis.call('GET', KEYS[1])
if holder == owner then
  -- The first reply was lost. Nobody was granted since, so the last token is ours. The lease is never
  -- shortened: this request may be a late copy that arrives after an extension.
  if redis.call('PTTL', KEYS[1]) - leaseMs < 0 then
    redis.call('PEXPIRE', KEYS[1], leaseMs)
  end
  redis.call('DEL', KEYS[4])
  local last = redis.call('GET', KEYS[2])
  if not last then
    local time = redis.call('TIME')
    last = time[1] * 1000000 + time[2] + block - 1
    redis.call('PSETEX', KEYS[2], fenceMs, last)
  end
  return last - block + 1
end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

-- Takes a place in the queue, unless the claim has one or may not. Returns the pause, if there is one.
local function queue()
  local pause = redis.call('GET', KEYS[5])
  local isQueued = redis.call('ZSCORE', KEYS[3], owner)
  if pause and enqueue ~= '2' and not isQueued then
    enqueue = '0'
  else
    if not isQueued then
      local latest = redis.call('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')[2] or 0
      redis.call('ZADD', KEYS[3], math.max(latest + 1, now), owner)
    end
    -- Waiters ask again every few seconds; a queue that nobody asks about belongs to processes that are gone.
    redis.call('PEXPIRE', KEYS[3], 60000)
  end
  return pause or nil
end

if holder then
  -- What follows is not even defined for those who only wait, as most do on a busy lock.
  local pause = nil
  if enqueue ~= '0' then
    pause = queue()
  end
  return {enqueue == '0' and 1 or 0, redis.call('PTTL', KEYS[1]), now, pause}
end

-- include tell
-- include hand-off
-- include lose-places
local isUnconfirmed = losePlaces(inbox)
local pause = queue()
if pause then
  -- A fence that outlives a lease is kept for ten minutes more, and one that a pause has moved for longer than that. So is
  -- that of a grant which nobody has confirmed: it was over before its lease would have been.
  if isUnconfirmed or redis.call('PTTL', KEYS[2]) <= 600000 then
    moveFence(redis.call('PTTL', KEYS[5]), now)
  end
  return {enqueue == '0' and 1 or 0, redis.call('PTTL', KEYS[5]), now, pause}
end

-- A holder died. Whoever asks first promotes the head of the queue, which may be the caller itself.
local granted, token = handOff(inbox, owner, now)
if granted == owner then
  return token
end
if enqueue == '0' then
  redis.call('ZREM', KEYS[3], owner)
end
return {enqueue == '0' and 1 or 0, redis.call('PTTL', KEYS[1]), now}
