--[[
  interop/redisson/read-write/write-leave: release the write hold of an owner, if it has one.

  Used when a wait has ended, and for a forced release.

  KEYS[1] lock     hash, mode -> read or write, owner -> hold count; expires with the longest lease
  ARGV[1] name     the first key, without any prefix that a client adds
  ARGV[2] owner    id of the claim, with the suffix of writers
  ARGV[3] channel  channel of the waiters
  ARGV[4] how      plain, sharded or both
  REPLY   0        absent: the owner has no write hold
          1        released
          3        mistyped: the key belongs to an object of a different type
          4        prefixed: the client added a prefix to the key
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
-- A writer that also reads has a second field, without the suffix. Passing that to `endWrite` would admit readers.
local isWriter = string.sub(owner, -6) == ':write'
if mode ~= 'write' or not isWriter or redis.call('HEXISTS', KEYS[1], owner) == 0 then
  return 0
end
endWrite(owner, channel, how)
return 1
