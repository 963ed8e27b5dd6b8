--[[
  interop/redisson/fair/release: give the fair lock back, if it is still ours, and wake whoever stands first.

  Where it had expired, Redisson says that all is well; here that is told, and the first is woken all the same.

  KEYS[1] lock     hash, owner -> hold count; expires with the lease
  KEYS[2] queue    list, owners in the order in which they came
  KEYS[3] timeout  sorted set, owner -> until when it keeps its place, in ms since 1970
  KEYS[4] latch    string, what this very request did; expires
  ARGV[1] owner    id of the claim that was granted
  ARGV[2] channel  what an owner is appended to, behind a colon, for the channel that it listens on
  ARGV[3] how      plain, sharded or both
  ARGV[4] latchMs  how long the latch is kept
  REPLY   1        released
          2        forgotten: it is not ours, and nothing tells since when
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
