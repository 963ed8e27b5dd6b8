--[[
  interop/redisson/fair/leave: leave the queue, and release the lock if it was granted in the meantime.

  The deadlines of the waiters behind this claim include its wait, so the script subtracts that wait from them, as
  Redisson does. If the lock is free, the message about its release may have gone to this claim, so the script notifies
  the waiter that is first now.

  KEYS[1] lock     hash, owner -> hold count; expires with the lease
  KEYS[2] queue    list, owners in order of arrival
  KEYS[3] timeout  sorted set, owner -> deadline of its place, in ms since 1970
  ARGV[1] owner    id of the claim that gives up
  ARGV[2] waitMs   as in fair/acquire
  ARGV[3] channel  prefix of a waiter's channel, to which a colon and its owner are appended
  ARGV[4] how      plain, sharded or both
  REPLY   0        absent: the claim neither waited nor held the lock
          1        left the queue
          2        released: the claim had been granted
]]
local owner, waitMs, channel, how = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

-- include redisson-publish
-- include redisson-fair
-- include redisson-field
local isOurs = has(owner) == 1
local isAfterOwner = false
for _, waiter in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do
  if isAfterOwner then
    redis.call('ZINCRBY', KEYS[3], -waitMs, waiter)
  elseif waiter == owner then
    isAfterOwner = true
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
return isAfterOwner and 1 or 0
