--[[
  admin/waiters: return the arrival times of the first waiters in a queue. Read-only.

  KEYS[1] queue   sorted set, owner of a waiting claim -> arrival in microseconds of the server's clock, or a sequence
                  number
  ARGV[1] most    how many waiters to return, 1 or more
  REPLY   {0, texts...}  seen: owner and arrival of each waiter, alternating, in queue order
]]
local reply = {0}
for _, text in ipairs(redis.call('ZRANGE', KEYS[1], 0, ARGV[1] - 1, 'WITHSCORES')) do
  reply[#reply + 1] = text
end
return reply
