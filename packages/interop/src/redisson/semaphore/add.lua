--[[
  interop/redisson/semaphore/add: add permits, or remove some, no matter which client held them.

  This is the release of a plain semaphore, which does not check that the caller held any permits. INCRBY keeps the
  expiry of the count; SET would remove it.

  KEYS[1] permits      string, number of free permits
  KEYS[2] request      string, the reply to this request if it has already run
  KEYS[3] timeout      key of a semaphore with permits that expire; must not exist
  KEYS[4] leases       sorted set, Holdfast's record of a semaphore that no longer exists
  KEYS[5] grants       hash, the same
  ARGV[1] name         the first key, without any prefix that a client adds
  ARGV[2] amount       number of permits, negative to remove some
  ARGV[3] onlyIfThere  1 to do nothing if the semaphore does not exist, 0 to create it
  ARGV[4] keepMs       how long the reply is remembered
  ARGV[5] channel      channel of the waiters
  ARGV[6] how          plain, sharded or both
  REPLY   {0, value}  done: 1, or 0 if the semaphore does not exist and was not created
          2           expirable: the name belongs to a semaphore with permits that expire
          3           strange: the value of the key is not a count
          4           prefixed: the client added a prefix to the key
]]
local name, amount, onlyIfThere, keepMs = ARGV[1], ARGV[2], ARGV[3] == '1', ARGV[4]
local channel, how = ARGV[5], ARGV[6]

-- include redisson-count
-- include redisson-once
if redis.call('EXISTS', KEYS[3]) == 1 then
  return 2
end
if not text then
  redis.call('DEL', KEYS[4], KEYS[5])
  if onlyIfThere then
    return answer(0)
  end
end
-- include redisson-publish
-- Without a free permit there is nothing to announce, and Java fails on a negative message.
if count + amount > 0 then
  publish(how, channel, count + amount)
end
redis.call('INCRBY', KEYS[1], amount)
return answer(1)
