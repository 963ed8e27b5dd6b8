--[[
  condition/inspect: who waits for a signal. Changes nothing.

  KEYS[1] condition  sorted set, owner of a claim that waits for a signal -> arrival number
  ARGV[1] owner      a claim whose place in the queue is asked for; empty for none
  ARGV[2] most       how many waiters to name, 1 or more
  REPLY   {0, waiters, ahead, owners...}  waiting; ahead is the place of the claim asked for, -1 if it does not wait
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
