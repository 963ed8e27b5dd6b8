--[[
  interop/redisson/semaphore/inspect: how many permits are free, and who of this library's holders has how many.

  Nobody can tell who has the others: the wire format does not say. Changes nothing.

  KEYS[1] permits  string, how many are free
  KEYS[2] leases   sorted set, owner -> end of its lease in ms
  KEYS[3] grants   hash, owner -> <permits>/<token>
  ARGV[1] name     the first key as it must arrive here
  ARGV[2] most     how many holders to name, 1 or more
  REPLY   {0, free, rest...}  seen; rest are the owner, grant and rest of the lease in ms of each holder
          1                   unset: there is no such semaphore
          3                   strange: the key holds no count
          4                   prefixed: a client has put something before the key
]]
local name, most = ARGV[1], ARGV[2]

-- include redisson-count
if not text then
  return 1
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local reply = {0, count}
local leases = redis.call('ZRANGE', KEYS[2], 0, most - 1, 'WITHSCORES')
for i = 1, #leases, 2 do
  reply[#reply + 1] = leases[i]
  reply[#reply + 1] = redis.call('HGET', KEYS[3], leases[i]) or ''
  reply[#reply + 1] = math.max(0, leases[i + 1] - now)
end
return reply
