--[[
  interop/redisson/fair/inspect: who holds the fair lock, and who waits for it.

  KEYS[1] lock   hash, owner -> hold count; expires with the lease
  KEYS[2] queue  list, owners in the order in which they came
  ARGV[1] name   the first key as it must arrive here
  ARGV[2] most   how many waiters to name
  REPLY   {0, restMs, waiters, names...}  free: the first waiters
          {1, restMs, waiters, names...}  held: the holder, then the first waiters
          3                               mistyped: the key is of something else
          4                               prefixed: a client has put something before the key
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
