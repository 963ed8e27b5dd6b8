--[[
  interop/redisson/expirable-semaphore/inspect: how many permits are free, and the ids of those that are held.

  Changes nothing, so what is over and was not reaped yet is left out.

  KEYS[1] permits  string, how many are free
  KEYS[2] timeout  sorted set, id of a permit, 16 bytes -> end of its lease in ms, 922337203685477 if it has none
  ARGV[1] name     the first key as it must arrive here
  ARGV[2] most     how many permits to name, 1 or more
  REPLY   {0, free, rest...}  seen; rest are the id and the rest of the lease in ms of each permit, -1 if it does not end
          3                   strange: the key holds no count
          4                   prefixed: a client has put something before the key
]]
local name, most = ARGV[1], ARGV[2]

-- include redisson-count
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- include redisson-ids
local reply = {0, count}
local held = redis.call('ZRANGEBYSCORE', KEYS[2], now + 1, '+inf', 'WITHSCORES', 'LIMIT', 0, most)
for i = 1, #held, 2 do
  reply[#reply + 1] = toHex(held[i])
  reply[#reply + 1] = tonumber(held[i + 1]) >= 922337203685477 and -1 or held[i + 1] - now
end
return reply
