--[[
  interop/redisson/force-release: end the hold of a named owner, and wake a waiter.

  The protocol has no message to the holder: it finds out when it renews.

  The counter alone does not say who holds: an RLock of the same name leaves it as it is. So an owner is named in any case.

  KEYS[1] lock     hash, owner -> hold count; expires with the lease
  KEYS[2] fence    string, the last token of a FencedLock
  ARGV[1] name     the first key as it must arrive here
  ARGV[2] owner    id of the holder
  ARGV[3] token    that the counter has to show; empty if the owner says enough
  ARGV[4] channel  where waiters listen
  ARGV[5] how      plain, sharded or both
  REPLY   0        absent: it is free, or somebody else holds it
          1        released
          3        mistyped: the key is of something else
          4        prefixed: a client has put something before the key
]]
local name, owner, token, channel, how = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- include redisson-publish
-- include redisson-field
if not rawequal(name, KEYS[1]) then
  return 4
end
if has('mode') ~= 0 then
  return 3
end
local isToken = token == '' or redis.call('GET', KEYS[2]) == token
if has(owner) ~= 1 or not isToken then
  return 0
end
publish(how, channel, '0')
redis.call('DEL', KEYS[1])
return 1
