--[[
  interop/redisson/read-write/downgrade: go on reading where one has written, without a moment in which others write.

  What a thread of Java does when it locks for reading and then gives up writing, in one step. Asked again, it says the same.

  KEYS[1] lock     hash, mode -> read or write, owner -> hold count; expires with the longest lease
  KEYS[2] hold     string, 1; expires with this lease
  ARGV[1] writer   id of the claim that writes, with what marks a writer
  ARGV[2] owner    id of the claim
  ARGV[3] leaseMs  length of the lease, counted from now
  ARGV[4] channel  where waiters listen
  ARGV[5] how      plain, sharded or both
  REPLY   1        downgraded
          2        forgotten: it is not ours, and nothing tells since when
]]
local writer, owner, leaseMs, channel, how = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- include redisson-publish
-- include redisson-writer
local isWriter = redis.call('HEXISTS', KEYS[1], writer) == 1
if not isWriter and redis.call('HEXISTS', KEYS[1], owner) == 0 then
  return 2
end
-- A full server accepts this first write, and then the others (docs/adr/135).
redis.call('HDEL', KEYS[1], '')
redis.call('HSET', KEYS[1], owner, 1)
-- Never shorter: this may be a late copy that arrives after an extension.
if redis.call('PTTL', KEYS[2]) - leaseMs < 0 then
  redis.call('SET', KEYS[2], 1, 'PX', leaseMs)
end
if isWriter then
  endWrite(writer, channel, how)
end
if redis.call('PTTL', KEYS[1]) - leaseMs < 0 then
  redis.call('PEXPIRE', KEYS[1], leaseMs)
end
return 1
