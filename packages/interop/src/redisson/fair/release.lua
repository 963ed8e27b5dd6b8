--[[
  interop/redisson/fair/release: release the fair lock if the claim still holds it, and notify the first waiter.

  If the lock has expired and is free, the script still notifies the first waiter. Unlike Redisson, it reports that the
  claim did not hold the lock.

  KEYS[1] lock     hash, owner -> hold count; expires with the lease
  KEYS[2] queue    list, owners in order of arrival
  KEYS[3] timeout  sorted set, owner -> deadline of its place, in ms since 1970
  KEYS[4] latch    string, result of this request; expires
  ARGV[1] owner    id of the claim that was granted
  ARGV[2] channel  prefix of a waiter's channel, to which a colon and its owner are appended
  ARGV[3] how      plain, sharded or both
  ARGV[4] latchMs  how long the latch lives
  REPLY   1        released
          2        forgotten: the claim does not hold the lock, and the server cannot tell since when
]]
local owner, channel, how, latchMs = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

-- include redisson-publish
-- include redisson-fair
if redis.call('EXISTS', KEYS[4]) == 1 then
  return 1
end
local isOurs = redis.call('HEXISTS', KEYS[1], owner) == 1
if not isOurs and redis.call('EXISTS', KEYS[1]) == 1 then
  return 2
end
local time = redis.call('TIME')
local head = headOfQueue(math.floor(time[1] * 1000 + time[2] / 1000))
if head then
  publish(how, channel .. ':' .. head, '0')
end
if not isOurs then
  return 2
end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[4], '1', 'PX', latchMs)
return 1
