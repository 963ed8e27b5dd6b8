--[[
  interop/redisson/fair/inspect: return the holder of the fair lock and its waiters.

  KEYS[1] lock   hash, owner -> hold count; expires with the lease
  KEYS[2] queue  list, owners in order of arrival
  ARGV[1] name   the first key, without any prefix that a client adds
  ARGV[2] most   number of waiters to return
  REPLY   {0, restMs, waiters, names...}  free: waiters is their number, names are the first of them
          {1, restMs, waiters, names...}  held: names are the holder and the first waiters
          3                               mistyped: the key belongs to an object of a different type
          4                               prefixed: the client added a prefix to the key
]]
local name, most = ARGV[1], ARGV[2]

-- include redisson-field
if not rawequal(name, KEYS[1]) then
  return 4
end
if has('mode') ~= 0 then
  return 3
end
local holder = redis.call('HKEYS', KEYS[1])[1]
local reply = {holder and 1 or 0, redis.call('PTTL', KEYS[1]), redis.call('LLEN', KEYS[2])}
if holder then
  reply[#reply + 1] = holder
end
for _, waiter in ipairs(redis.call('LRANGE', KEYS[2], 0, most - 1)) do
  reply[#reply + 1] = waiter
end
return reply
