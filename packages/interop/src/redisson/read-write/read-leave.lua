--[[
  interop/redisson/read-write/read-leave: release all read holds of an owner, if it has any.

  Used when a wait has ended, and for a forced release. A forced release may end several holds, because Java readers are
  reentrant.

  KEYS[1] lock      hash, mode -> read or write, owner -> hold count; expires with the longest lease
  ARGV[1] name      the first key, without any prefix that a client adds
  ARGV[2] owner     id of the claim
  ARGV[3] holdBase  prefix of the keys of read holds
  ARGV[4] channel   channel of the waiters
  ARGV[5] how       plain, sharded or both
  REPLY   0         absent: the owner has no read hold
          1         released
          3         mistyped: the key belongs to an object of a different type
          4         prefixed: the client added a prefix to the key
]]
local name, owner, holdBase, channel, how = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- include redisson-publish
-- include redisson-readers
-- include redisson-mode
if not rawequal(name, KEYS[1]) then
  return 4
end
if modeOf() == nil then
  return 3
end
local isReader = owner ~= 'mode' and string.sub(owner, -6) ~= ':write'
if not isReader or redis.call('HEXISTS', KEYS[1], owner) == 0 then
  return 0
end
endReads(holdBase, owner, channel, how)
return 1
