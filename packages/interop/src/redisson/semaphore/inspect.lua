--[[
  interop/redisson/semaphore/inspect: return the number of free permits and the Holdfast holders. Read-only.

  The holders of other permits are unknown, because the wire format does not record them.

  KEYS[1] permits  string, number of free permits
  KEYS[2] leases   sorted set, owner -> end of its lease in ms
  KEYS[3] grants   hash, owner -> <permits>/<token>
  ARGV[1] name     the first key, without any prefix that a client adds
  ARGV[2] most     number of holders to return, 1 or more
  REPLY   {0, free, rest...}  seen; rest has the owner, the grant and the remaining lease in ms of each holder
          1                   unset: the semaphore does not exist
          3                   strange: the value of the key is not a count
          4                   prefixed: the client added a prefix to the key
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
