--[[
  condition/inspect: the claims waiting for a signal. Changes nothing.

  KEYS[1] condition  sorted set, owner of a claim that waits for a signal -> arrival number
  ARGV[1] owner      claim whose place in the queue to report; empty for none
  ARGV[2] most       maximum number of waiters to list, 1 or more
  REPLY   {0, waiters, ahead, owners...}  waiting; ahead is the number of waiters before the claim, or -1
]]
local owner, most = ARGV[1], ARGV[2]

local reply = {
  0,
  redis.call('ZCARD', KEYS[1]),
  owner ~= '' and redis.call('ZRANK', KEYS[1], owner) or -1
}
for _, waiter in ipairs(redis.call('ZRANGE', KEYS[1], 0, most - 1)) do
  reply[#reply + 1] = waiter
end
return reply
