--[[
  condition/signal: let waiters of a condition go on, as soon as they get the mutex.

  Each goes to the end of the mutex's queue and is an ordinary waiter from then on. The answer is kept, because a
  request that is sent again must not signal a second waiter. A holder sends one request after the other, so the
  last answer is enough, and a late copy of an earlier request does nothing.

  KEYS[1] lock       string, owner of the claim that holds; expires with its lease
  KEYS[2] fence      string, last token issued
  KEYS[3] queue      sorted set, owner of a claim that waits for the mutex -> arrival number
  KEYS[4] condition  sorted set, owner of a claim that waits for a signal -> arrival number
  KEYS[5] signalled  hash, owner, request and moved: the last signal of this condition
  ARGV[1] owner      id of the claim that holds the mutex
  ARGV[2] token      token of its grant
  ARGV[3] request    number of this request among those of the same holder
  ARGV[4] most       how many to signal at most
  ARGV[5] inbox      what a client id is appended to for the channel that the client listens on
  REPLY   {1, moved, left}  signalled: so many; left still wait for a signal
          {2}               unclaimed: the lease had ended, and nobody was granted since
          {3}               claimed: the lease had ended, and somebody else was granted since
          {4}               forgotten: the server does not know that there ever was such a lease
]]
local owner, token, request, most, inbox = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- include tell
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
redis.call('HSET', KEYS[5], 'owner', owner, 'request', request, 'moved', moved)
redis.call('PEXPIRE', KEYS[5], 600000)
return {1, moved, redis.call('ZCARD', KEYS[4])}
