--[[
  interop/redisson/expirable-semaphore/set-permits: change the total number of permits, including those that are held.

  If more permits than that are held, the count of free permits becomes negative, and no permits are granted until
  enough have been released. A permit whose lease has ended counts as held until it is taken back. Taking it back does
  not change the total.

  KEYS[1] permits  string, number of free permits
  KEYS[2] request  string, the reply to this request if it has already run
  KEYS[3] timeout  sorted set, id of a permit, 16 bytes -> end of its lease in ms
  KEYS[4] leases   record of a plain semaphore; must not exist
  ARGV[1] name     the first key, without any prefix that a client adds
  ARGV[2] amount   total number of permits, 0 or more
  ARGV[3] keepMs   how long the reply is remembered
  ARGV[4] channel  channel of the waiters
  ARGV[5] how      plain, sharded or both
  GRANTS  by itself
  REPLY   {0, value}  done: 1 if the number was changed, 0 if it was the same
          2           plain: the name belongs to a plain semaphore
          3           strange: the value of the key is not a count
          4           prefixed: the client added a prefix to the key
]]
local name, amount, keepMs, channel, how = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- include redisson-count
-- include redisson-once
if redis.call('EXISTS', KEYS[4]) == 1 then
  return 2
end
local change = amount - count - redis.call('ZCARD', KEYS[3])
if text and change == 0 then
  return answer(0)
end
-- include redisson-publish
if amount ~= '0' then
  publish(how, channel, amount)
end
if text then
  redis.call('INCRBY', KEYS[1], change)
else
  redis.call('SET', KEYS[1], amount)
end
return answer(1)
