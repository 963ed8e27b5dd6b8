--[[
  interop/redisson/inspect: return the holder of the lock.

  KEYS[1] lock   hash, owner -> hold count; expires with the lease
  KEYS[2] fence  string, the last token of a FencedLock
  ARGV[1] name   the first key, without any prefix that a client adds
  REPLY   {0, restMs, token, owners...}  free
          {1, restMs, token, owners...}  held: one owner; restMs is -1 if it never ends; token is 0 if none was issued
          3                              mistyped: the key belongs to an object of a different type
          4                              prefixed: the client added a prefix to the key
]]
local name = ARGV[1]

-- include redisson-field
if not rawequal(name, KEYS[1]) then
  return 4
end
if has('mode') ~= 0 then
  return 3
end
local owners = redis.call('HKEYS', KEYS[1])
local reply = {
  #owners > 0 and 1 or 0,
  redis.call('PTTL', KEYS[1]),
  tonumber(redis.call('GET', KEYS[2]) or 0)
}
for _, owner in ipairs(owners) do
  reply[#reply + 1] = owner
end
return reply
