--[[
  interop/redisson/release: release the lock if the claim still holds it, and notify the waiters.

  The latch remembers the release in case the request is sent again, because the hash does not show which owners it had.

  KEYS[1] lock     hash, owner -> hold count; expires with the lease
  KEYS[2] latch    string, result of this request; expires
  ARGV[1] owner    id of the claim that was granted
  ARGV[2] channel  channel of the waiters
  ARGV[3] how      plain, sharded or both
  ARGV[4] latchMs  how long the latch lives
  REPLY   1        released
          2        forgotten: the claim does not hold the lock, and the server cannot tell since when
]]
local owner, channel, how, latchMs = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

-- include redisson-publish
if redis.call('EXISTS', KEYS[2]) == 1 then
  return 1
end
if redis.call('HEXISTS', KEYS[1], owner) == 0 then
  return 2
end
publish(how, channel, '0')
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[2], '1', 'PX', latchMs)
return 1
