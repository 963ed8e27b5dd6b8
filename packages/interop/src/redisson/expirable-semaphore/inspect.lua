--[[
  interop/redisson/expirable-semaphore/inspect: return the number of free permits and the ids of held ones. Read-only.

  Takes no permits back, so those whose lease has ended count neither as free nor as held.

  KEYS[1] permits  string, number of free permits
  KEYS[2] timeout  sorted set, id of a permit, 16 bytes -> end of its lease in ms, 922337203685477 if it never ends
  ARGV[1] name     the first key, without any prefix that a client adds
  ARGV[2] most     number of permits to return, 1 or more
  REPLY   {0, free, rest...}  seen; rest has the id and the remaining lease in ms of each permit, -1 if it never ends
          3                   strange: the value of the key is not a count
          4                   prefixed: the client added a prefix to the key
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
