--[[
  interop/redisson/fair/leave: leave the queue; and if the lock was granted meanwhile, give it back.

  The deadlines behind it were counted from its own, so its wait is taken off them, as Redisson does. Where the lock is
  free the message to us may have been the one that woke somebody, so it goes on to who is first now.

  KEYS[1] lock     hash, owner -> hold count; expires with the lease
  KEYS[2] queue    list, owners in the order in which they came
  KEYS[3] timeout  sorted set, owner -> until when it keeps its place, in ms since 1970
  ARGV[1] owner    id of the claim that gives up
  ARGV[2] waitMs   as in fair/acquire
  ARGV[3] channel  what an owner is appended to, behind a colon, for the channel that it listens on
  ARGV[4] how      plain, sharded or both
  REPLY   0        absent: it neither waited nor held
          1        left the queue
          2        released what had been granted
]]
local owner, waitMs, channel, how = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

-- include redisson-publish
-- include redisson-fair
-- include redisson-field
local isOurs = has(owner) == 1
local isBehind = false
for _, waiter in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do
  if isBehind then
    redis.call('ZINCRBY', KEYS[3], -waitMs, waiter)
  elseif waiter == owner then
    isBehind = true
  end
end
redis.call('ZREM', KEYS[3], owner)
redis.call('LREM', KEYS[2], 0, owner)

if isOurs or redis.call('EXISTS', KEYS[1]) == 0 then
  local time = redis.call('TIME')
  local head = headOfQueue(math.floor(time[1] * 1000 + time[2] / 1000))
  if head then
    publish(how, channel .. ':' .. head, '0')
  end
end
if isOurs then
  redis.call('DEL', KEYS[1])
  return 2
end
return isBehind and 1 or 0
