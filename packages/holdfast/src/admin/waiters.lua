--[[
  admin/waiters: since when the first ones in a queue wait. Changes nothing.

  KEYS[1] queue   sorted set, owner of a waiting claim -> when it came, in microseconds of the server's clock, or its number
  ARGV[1] most    how many to tell of, 1 or more
  REPLY   {0, texts...}  seen: owner and arrival of each in turn, next one first
]]
local reply = {0}
for _, text in ipairs(redis.call('ZRANGE', KEYS[1], 0, ARGV[1] - 1, 'WITHSCORES')) do
  reply[#reply + 1] = text
end
return reply
