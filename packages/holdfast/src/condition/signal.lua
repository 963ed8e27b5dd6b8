--[[
  condition/signal: signal waiters of a condition, which continue as soon as they get the mutex.

  Each signaled waiter moves to the end of the mutex's queue and is a regular waiter from then on. The reply is
  stored, because a repeated request must not signal a second waiter. A holder sends its requests one after the other,
  so storing the last reply is enough. A late copy of an earlier request does nothing. A holder that may retain the
  mutex is recalled immediately, so that it does not keep the mutex until the signaled waiters ask for it.

  KEYS[1] lock       string, owner id of the holder; expires with its lease
  KEYS[2] fence      string, last token issued
  KEYS[3] queue      sorted set, owner of a claim that waits for the mutex -> arrival number
  KEYS[4] condition  sorted set, owner of a claim that waits for a signal -> arrival number
  KEYS[5] signalled  hash, owner, request and moved: the last signal of this condition
  ARGV[1] owner      id of the claim that holds the mutex
  ARGV[2] token      token of its grant
  ARGV[3] request    number of this request; rises with each request of the same holder
  ARGV[4] most       maximum number of waiters to signal
  ARGV[5] inbox      prefix of inbox channels; a client's channel is the prefix plus the client id
  REPLY   {1, moved, left}  signalled: moved waiters were signaled; left waiters still wait for a signal
          {2}               unclaimed: the lease has ended, and nothing has been granted since
          {3}               claimed: the lease has ended, and another claim has been granted since
          {4}               forgotten: the server has no record of the lease
]]
local owner, token, request, most, inbox = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- include notify
-- include holds
-- include why-lost
-- include signal-next
local last = redis.call('HMGET', KEYS[5], 'owner', 'request', 'moved')
if last[1] == owner and request - last[2] <= 0 then
  return {1, tonumber(last[3]), redis.call('ZCARD', KEYS[4])}
end
if not holds(owner, token) then
  return {whyLost(redis.call('GET', KEYS[1]), token)}
end

local moved = signalNext(inbox, tonumber(most), function()
  return redis.call('ZPOPMIN', KEYS[4])[1]
end)
if moved > 0 then
  local holder = owner
  -- include recall
end
redis.call('HSET', KEYS[5], 'owner', owner, 'request', request, 'moved', moved)
redis.call('PEXPIRE', KEYS[5], 600000)
return {1, moved, redis.call('ZCARD', KEYS[4])}
