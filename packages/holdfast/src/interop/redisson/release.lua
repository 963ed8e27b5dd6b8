--[[
  interop/redisson/release: give the lock back, if it is still ours, and wake a waiter.

  The latch remembers that it was done: an owner that is gone cannot be told from one that never was.

  KEYS[1] lock     hash, owner -> hold count; expires with the lease
  KEYS[2] latch    string, what this very request did; expires
  ARGV[1] owner    id of the claim that was granted
  ARGV[2] channel  where waiters listen
  ARGV[3] how      plain, sharded or both
  ARGV[4] latchMs  how long the latch is kept
  REPLY   1        released
          2        forgotten: it is not ours, and nothing tells since when
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
