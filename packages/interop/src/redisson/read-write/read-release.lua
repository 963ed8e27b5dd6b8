--[[
  interop/redisson/read-write/read-release: release a read hold, and notify the waiters if it was the last.

  Like Redisson, publishes even if the lock no longer exists.

  KEYS[1] lock      hash, mode -> read or write, owner -> hold count; expires with the longest lease
  KEYS[2] latch     string, result of this request; expires
  ARGV[1] owner     id of the claim that was granted
  ARGV[2] holdBase  prefix of the keys of read holds
  ARGV[3] channel   channel of the waiters
  ARGV[4] how       plain, sharded or both
  ARGV[5] latchMs   how long the latch lives
  REPLY   1         released
          2         forgotten: the claim does not hold the lock, and the server cannot tell since when
]]
local owner, holdBase, channel, how, latchMs = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- include redisson-publish
-- include redisson-readers
if redis.call('EXISTS', KEYS[2]) == 1 then
  return 1
end
if redis.call('EXISTS', KEYS[1]) == 0 then
  publish(how, channel, '0')
end
if redis.call('HEXISTS', KEYS[1], owner) == 0 then
  return 2
end
-- A server at its memory limit accepts this command, and then all later writes of this script (docs/adr/135).
redis.call('HDEL', KEYS[1], '')
local isHeld = endReads(holdBase, owner, channel, how)
redis.call('SET', KEYS[2], isHeld and '0' or '1', 'PX', latchMs)
return 1
