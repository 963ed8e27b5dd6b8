--[[
  mutex/inspect: the holder and the waiters of the mutex. Changes nothing.

  KEYS[1] lock   string, owner id of the holder; expires with its lease
  KEYS[2] fence  string, last token issued
  KEYS[3] queue  sorted set, owner of a waiting claim -> arrival number
  KEYS[4] pause  string, the current pause, during which nothing is granted; expires at its end
  ARGV[1] owner  claim whose place in the queue to report; empty for none
  ARGV[2] most   maximum number of waiters to list, 1 or more
  REPLY   {0, restMs, token, waiters, ahead, owners...}  free; restMs is -2; token is 0 if none is on record;
                 ahead is the number of waiters before the claim, -1 if it is not waiting; owners are the pause (empty
                 if there is none) and then the waiters
          {1, restMs, token, waiters, ahead, owners...}  held; restMs is -1 if the key has no expiry; owners are
                 the pause as above, then the holder, then the waiters
]]
local owner, most = ARGV[1], ARGV[2]

local holder = redis.call('GET', KEYS[1])
local reply = {
  holder and 1 or 0,
  redis.call('PTTL', KEYS[1]),
  tonumber(redis.call('GET', KEYS[2]) or 0),
  redis.call('ZCARD', KEYS[3]),
  owner ~= '' and redis.call('ZRANK', KEYS[3], owner) or -1
}
reply[#reply + 1] = redis.call('GET', KEYS[4]) or ''
if holder then
  reply[#reply + 1] = holder
end
for _, waiter in ipairs(redis.call('ZRANGE', KEYS[3], 0, most - 1)) do
  reply[#reply + 1] = waiter
end
return reply
