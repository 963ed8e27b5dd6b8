--[[
  interop/redisson/read-write/downgrade: turn a write hold into a read hold, without letting another writer in.

  A Java thread does the same in two steps: it acquires the read lock and then releases the write lock. If the request
  is sent again, the reply is the same.

  KEYS[1] lock     hash, mode -> read or write, owner -> hold count; expires with the longest lease
  KEYS[2] hold     string, 1; expires with this lease
  ARGV[1] writer   id of the claim, with the suffix of writers
  ARGV[2] owner    id of the claim, without that suffix
  ARGV[3] leaseMs  length of the lease from now
  ARGV[4] channel  channel of the waiters
  ARGV[5] how      plain, sharded or both
  REPLY   1        downgraded
          2        forgotten: the claim does not hold the lock, and the server cannot tell since when
]]
local writer, owner, leaseMs, channel, how = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- include redisson-publish
-- include redisson-writer
local isWriter = redis.call('HEXISTS', KEYS[1], writer) == 1
if not isWriter and redis.call('HEXISTS', KEYS[1], owner) == 0 then
  return 2
end
-- A server at its memory limit accepts this command, and then all later writes of this script (docs/adr/135).
redis.call('HDEL', KEYS[1], '')
redis.call('HSET', KEYS[1], owner, 1)
-- The lease is never shortened: this may be a late copy of the request that arrives after an extension.
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
