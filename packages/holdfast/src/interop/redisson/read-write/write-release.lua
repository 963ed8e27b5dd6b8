--[[
  interop/redisson/read-write/write-release: end a write hold, and wake everybody.

  Redisson publishes even where there is no lock any more, and so does this.

  KEYS[1] lock     hash, mode -> read or write, owner -> hold count; expires with the longest lease
  KEYS[2] latch    string, what this very request did; expires
  ARGV[1] owner    id of the claim that was granted, with what marks a writer
  ARGV[2] channel  where waiters listen
  ARGV[3] how      plain, sharded or both
  ARGV[4] latchMs  how long the latch is kept
  REPLY   1        released
          2        forgotten: it is not ours, and nothing tells since when
]]
local owner, channel, how, latchMs = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

-- include redisson-publish
-- include redisson-writer
if redis.call('EXISTS', KEYS[2]) == 1 then
  return 1
end
if redis.call('EXISTS', KEYS[1]) == 0 then
  tellOfWriter(channel, how)
end
if redis.call('HEXISTS', KEYS[1], owner) == 0 then
  return 2
end
-- A full server accepts this first write, and then the others (docs/adr/135).
redis.call('HDEL', KEYS[1], '')
endWrite(owner, channel, how)
redis.call('SET', KEYS[2], '1', 'PX', latchMs)
return 1
