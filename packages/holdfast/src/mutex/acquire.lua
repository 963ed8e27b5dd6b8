--[[
  mutex/acquire: take the mutex if it is free and has no waiters; otherwise, if requested, join its queue.

  This is one atomic step, so that a holder always has a token and no claim waits for a free mutex. A repeated request
  with the same owner gets the same reply, because the first reply may have been lost. The token is the server's time in
  microseconds, or the last token + 1 if that is higher. So tokens rise even if the fence key is gone or a promoted
  replica lacks it.

  KEYS[1] lock     string, owner id of the holder; expires with its lease
  KEYS[2] fence    string, last token issued
  KEYS[3] queue    sorted set, owner of a waiting claim -> arrival: time in µs, or the last arrival + 1 if higher
  KEYS[4] handed   string, client whose grant by message is not confirmed yet
  KEYS[5] pause    string, the current pause, during which nothing is granted; expires at its end
  ARGV[1] owner    id of this claim
  ARGV[2] leaseMs  length of the lease
  ARGV[3] fenceMs  lifetime of the fence key; passed in because Lua converts computed numbers to text slowly
  ARGV[4] block    number of tokens that this claim reserves, 1 or more
  ARGV[5] enqueue  1 if the claim may join the queue, but not during a pause; 2 if it may join even during a pause;
                   0 if its client has no inbox or does not wait
  ARGV[6] inbox    prefix of inbox channels; a client's channel is the prefix plus the client id
  GRANTS  by itself
  REPLY   token                granted; the first token of the block
          {0, restMs, nowUs, pauses...}  waiting in the queue; restMs is the time until the current lease ends (-1 if it
                                         has no expiry), or until the pause ends if there is no holder; pauses is
                                         the current pause, if there is one
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
  -- The claim already holds the mutex; the first reply may have been lost. Nothing has been granted since, so the last
  -- token is its own. Do not shorten the lease, because this request may be a late copy that follows an extension.
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

-- Adds the claim to the queue, unless it is already there or is not allowed to join. Returns the pause, or nil.
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
    -- Waiters ask again every few seconds. If none does for 60 s, their processes are gone, so the queue may expire.
    redis.call('PEXPIRE', KEYS[3], 60000)
  end
  return pause or nil
end

if holder then
  -- Return before defining the functions below, because most calls on a busy lock end here.
  local pause = nil
  if enqueue ~= '0' then
    pause = queue()
  end
  -- include recall
  return {enqueue == '0' and 1 or 0, redis.call('PTTL', KEYS[1]), now, pause}
end

-- include notify
-- include hand-off
-- include lose-places
local isUnconfirmed = losePlaces(inbox)
local pause = queue()
if pause then
  -- If the fence key expires in more than 10 minutes, the fence need not be raised: it was raised for this pause, or
  -- the last holder released the lock. After an unconfirmed grant, which ends before its full lease, always raise the
  -- fence.
  if isUnconfirmed or redis.call('PTTL', KEYS[2]) <= 600000 then
    moveFence(redis.call('PTTL', KEYS[5]), now)
  end
  return {enqueue == '0' and 1 or 0, redis.call('PTTL', KEYS[5]), now, pause}
end

-- The last holder's lease has expired. The first request after that grants the mutex to the head of the queue, which
-- may be the caller itself.
local granted, token = handOff(inbox, owner, now)
if granted == owner then
  return token
end
if enqueue == '0' then
  redis.call('ZREM', KEYS[3], owner)
end
return {enqueue == '0' and 1 or 0, redis.call('PTTL', KEYS[1]), now}
