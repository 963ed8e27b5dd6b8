--[[
  interop/redisson/force-release: release the lock of a given owner, and notify the waiters.

  The protocol sends no message to the holder, which discovers the loss when it renews.

  The caller must always name the owner. The counter does not identify the holder, because an RLock with the same name
  does not change it.

  KEYS[1] lock     hash, owner -> hold count; expires with the lease
  KEYS[2] fence    string, the last token of a FencedLock
  ARGV[1] name     the first key, without any prefix that a client adds
  ARGV[2] owner    id of the holder
  ARGV[3] token    required value of the counter; empty to identify the holder by its owner only
  ARGV[4] channel  channel of the waiters
  ARGV[5] how      plain, sharded or both
  REPLY   0        absent: the lock is free, or another owner holds it
          1        released
          3        mistyped: the key belongs to an object of a different type
          4        prefixed: the client added a prefix to the key
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
