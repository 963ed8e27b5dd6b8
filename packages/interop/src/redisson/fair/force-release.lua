--[[
  interop/redisson/fair/force-release: release the lock of a given owner, and notify the first waiter.

  KEYS[1] lock     hash, owner -> hold count; expires with the lease
  KEYS[2] queue    list, owners in order of arrival
  KEYS[3] timeout  sorted set, owner -> deadline of its place, in ms since 1970
  ARGV[1] name     the first key, without any prefix that a client adds
  ARGV[2] owner    id of the holder
  ARGV[3] channel  prefix of a waiter's channel, to which a colon and its owner are appended
  ARGV[4] how      plain, sharded or both
  REPLY   0        absent: the lock is free, or another owner holds it
          1        released
          3        mistyped: the key belongs to an object of a different type
          4        prefixed: the client added a prefix to the key
]]
local name, owner, channel, how = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

-- include redisson-publish
-- include redisson-fair
-- include redisson-field
if not rawequal(name, KEYS[1]) then
  return 4
end
if has('mode') ~= 0 then
  return 3
end
if has(owner) == 0 then
  return 0
end
local time = redis.call('TIME')
local head = headOfQueue(math.floor(time[1] * 1000 + time[2] / 1000))
if head then
  publish(how, channel .. ':' .. head, '0')
end
redis.call('DEL', KEYS[1])
return 1
