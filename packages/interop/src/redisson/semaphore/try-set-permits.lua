--[[
  interop/redisson/semaphore/try-set-permits: set the number of permits, unless it is already set.

  Both kinds of semaphore use this script, because they share the key of the count.

  KEYS[1] permits  string, number of free permits
  KEYS[2] request  string, the reply to this request if it has already run
  KEYS[3] other    key that only a semaphore of the other kind has; must not exist
  KEYS[4] leases   sorted set, Holdfast's record of a plain semaphore that no longer exists
  KEYS[5] grants   hash, the same
  ARGV[1] name     the first key, without any prefix that a client adds
  ARGV[2] amount   number of permits, 0 or more
  ARGV[3] ttlMs    how long the count lives; 0 for forever
  ARGV[4] keepMs   how long the reply is remembered
  ARGV[5] channel  channel of the waiters
  ARGV[6] how      plain, sharded or both
  GRANTS  by itself
  REPLY   {0, value}  done: 1 if the number was set, 0 if it already is set
          2           mixed: the name belongs to a semaphore of the other kind
          3           strange: the value of the key is not a count
          4           prefixed: the client added a prefix to the key
]]
local name, amount, ttlMs, keepMs = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local channel, how = ARGV[5], ARGV[6]

-- include redisson-count
-- include redisson-once
if redis.call('EXISTS', KEYS[3]) == 1 then
  return 2
end
if text then
  return answer(0)
end
-- include redisson-publish
if amount ~= '0' then
  publish(how, channel, amount)
end
redis.call('DEL', KEYS[4], KEYS[5])
if ttlMs == '0' then
  redis.call('SET', KEYS[1], amount)
else
  redis.call('SET', KEYS[1], amount, 'PX', ttlMs)
end
return answer(1)
