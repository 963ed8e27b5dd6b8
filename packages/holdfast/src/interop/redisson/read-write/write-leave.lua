--[[
  interop/redisson/read-write/write-leave: end the write hold of an owner, if it has one.

  For a wait that is given up, and for a hold that is ended by force.

  KEYS[1] lock     hash, mode -> read or write, owner -> hold count; expires with the longest lease
  ARGV[1] name     the first key as it must arrive here
  ARGV[2] owner    id of the claim, with what marks a writer
  ARGV[3] channel  where waiters listen
  ARGV[4] how      plain, sharded or both
  REPLY   0        absent: it did not write
          1        released
          3        mistyped: the key is of something else
          4        prefixed: a client has put something before the key
]]
local name, owner, channel, how = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

-- include redisson-publish
-- include redisson-writer
-- include redisson-mode
if not rawequal(name, KEYS[1]) then
  return 4
end
local mode = modeOf()
if mode == nil then
  return 3
end
-- A writer that also reads has a field for that; to end it would open the lock to readers.
local isWriter = string.sub(owner, -6) == ':write'
if mode ~= 'write' or not isWriter or redis.call('HEXISTS', KEYS[1], owner) == 0 then
  return 0
end
endWrite(owner, channel, how)
return 1
