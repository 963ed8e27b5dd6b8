--[[
  recipes/coalesce/inspect: the claim that runs and the claims that wait. Changes nothing.

  KEYS[1] lock     string, owner of the claim that runs
  KEYS[2] fence    string, last token issued
  KEYS[3] waiting  sorted set, see recipes/coalesce/acquire
  KEYS[4] joining  sorted set, see recipes/coalesce/acquire
  ARGV[1] most     maximum number of waiting claims of each mode to list, 1 or more
  REPLY   {0, restMs, token, waiters, owners...}  free; token is 0 if there was none; owners are those of waiting claims
          {1, restMs, token, waiters, owners...}  held; the first owner is that of the claim that runs, the others wait
]]
local most = ARGV[1]

local holder = redis.call('GET', KEYS[1])
local reply = {
  holder and 1 or 0,
  redis.call('PTTL', KEYS[1]),
  tonumber(redis.call('GET', KEYS[2]) or 0),
  redis.call('ZCARD', KEYS[3]) + redis.call('ZCARD', KEYS[4])
}
if holder then
  reply[#reply + 1] = holder
end
for _, waiter in ipairs(redis.call('ZREVRANGE', KEYS[3], 0, most - 1)) do
  reply[#reply + 1] = waiter
end
for _, waiter in ipairs(redis.call('ZRANGE', KEYS[4], 0, most - 1)) do
  reply[#reply + 1] = waiter
end
return reply
