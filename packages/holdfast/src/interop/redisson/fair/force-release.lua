--[[
  interop/redisson/fair/force-release: end the hold of a named owner, and wake whoever stands first.

  KEYS[1] lock     hash, owner -> hold count; expires with the lease
  KEYS[2] queue    list, owners in the order in which they came
  KEYS[3] timeout  sorted set, owner -> until when it keeps its place, in ms since 1970
  ARGV[1] name     the first key as it must arrive here
  ARGV[2] owner    id of the holder
  ARGV[3] channel  what an owner is appended to, behind a colon, for the channel that it listens on
  ARGV[4] how      plain, sharded or both
  REPLY   0        absent: it is free, or somebody else holds it
          1        released
          3        mistyped: the key is of something else
          4        prefixed: a client has put something before the key
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
