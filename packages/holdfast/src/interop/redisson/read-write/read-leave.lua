--[[
  interop/redisson/read-write/read-leave: end the read holds of an owner, if it has any.

  For a wait that is given up, and for a hold that is ended by force: there it counts how often Java has entered.

  KEYS[1] lock      hash, mode -> read or write, owner -> hold count; expires with the longest lease
  ARGV[1] name      the first key as it must arrive here
  ARGV[2] owner     id of the claim
  ARGV[3] holdBase  what the keys of read holds begin with
  ARGV[4] channel   where waiters listen
  ARGV[5] how       plain, sharded or both
  REPLY   0         absent: it did not read
          1         released
          3         mistyped: the key is of something else
          4         prefixed: a client has put something before the key
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
