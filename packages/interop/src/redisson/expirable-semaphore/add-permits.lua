--[[
  interop/redisson/expirable-semaphore/add-permits: add free permits, or remove some. Held permits do not change.

  INCRBY keeps the expiry of the count; SET would remove it.

  KEYS[1] permits  string, number of free permits
  KEYS[2] request  string, the reply to this request if it has already run
  KEYS[3] leases   record of a plain semaphore; must not exist
  ARGV[1] name     the first key, without any prefix that a client adds
  ARGV[2] amount   number of permits, negative to remove some
  ARGV[3] keepMs   how long the reply is remembered
  ARGV[4] channel  channel of the waiters
  ARGV[5] how      plain, sharded or both
  REPLY   {0, value}  done: 1
          2           plain: the name belongs to a plain semaphore
          3           strange: the value of the key is not a count
          4           prefixed: the client added a prefix to the key
]]
local name, amount, keepMs, channel, how = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- include redisson-count
-- include redisson-once
if redis.call('EXISTS', KEYS[3]) == 1 then
  return 2
end
-- include redisson-publish
if tonumber(amount) > 0 then
  publish(how, channel, amount)
end
redis.call('INCRBY', KEYS[1], amount)
return answer(1)
