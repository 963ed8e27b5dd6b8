--[[
  count-down-latch/inspect: the count and the waiters. Changes nothing.

  KEYS[1] latch    hash: count, initial, generation, setBy
  KEYS[2] waiters  sorted set, owner of a waiting claim -> arrival number
  ARGV[1] owner    claim whose place to report; empty for none
  ARGV[2] most     maximum number of waiters to list, 1 or more
  REPLY   {0, count, initial, waiters, ahead, owners...}  unset: count and initial are 0
          {1, count, initial, waiters, ahead, owners...}  set: ahead is the number of waiters before the claim, or -1
]]
local owner, most = ARGV[1], ARGV[2]

local latch = redis.call('HMGET', KEYS[1], 'count', 'initial')
local reply = {
  latch[1] and 1 or 0,
  tonumber(latch[1] or 0),
  tonumber(latch[2] or 0),
  redis.call('ZCARD', KEYS[2]),
  owner ~= '' and redis.call('ZRANK', KEYS[2], owner) or -1
}
for _, waiter in ipairs(redis.call('ZRANGE', KEYS[2], 0, most - 1)) do
  reply[#reply + 1] = waiter
end
return reply
