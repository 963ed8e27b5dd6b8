--[[
  interop/redisson/read-write/read-release: end a read hold, and wake who waits to write if it was the last.

  Redisson publishes even where there is no lock any more, and so does this.

  KEYS[1] lock      hash, mode -> read or write, owner -> hold count; expires with the longest lease
  KEYS[2] latch     string, what this very request did; expires
  ARGV[1] owner     id of the claim that was granted
  ARGV[2] holdBase  what the keys of read holds begin with
  ARGV[3] channel   where waiters listen
  ARGV[4] how       plain, sharded or both
  ARGV[5] latchMs   how long the latch is kept
  REPLY   1         released
          2         forgotten: it is not ours, and nothing tells since when
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
-- A full server accepts this first write, and then the others (docs/adr/135).
redis.call('HDEL', KEYS[1], '')
local isHeld = endReads(holdBase, owner, channel, how)
redis.call('SET', KEYS[2], isHeld and '0' or '1', 'PX', latchMs)
return 1
