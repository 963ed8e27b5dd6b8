--[[
  interop/redisson/expirable-semaphore/try-release: release any client's permit by its id.

  Like Redisson, also releases a permit whose lease has ended but that has not been taken back yet. Redisson then
  reports a failure; this script reports that the release was late.

  KEYS[1] permits  string, number of free permits
  KEYS[2] request  string, the reply to this request if it has already run
  KEYS[3] timeout  sorted set, id of a permit, 16 bytes -> end of its lease in ms
  ARGV[1] name     the first key, without any prefix that a client adds
  ARGV[2] id       id of the permit, 32 hexadecimal digits
  ARGV[3] keepMs   how long the reply is remembered
  ARGV[4] channel  channel of the waiters
  ARGV[5] how      plain, sharded or both
  REPLY   {0, value}  done: 1 if the permit was held, 2 if its lease had ended, 0 if it was not held
          3           strange: the value of the key is not a count
          4           prefixed: the client added a prefix to the key
]]
local name, id, keepMs, channel, how = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- include redisson-count
-- include redisson-once
-- include redisson-publish
-- include redisson-ids
local ends = redis.call('ZSCORE', KEYS[3], toBytes(id))
if not ends then
  return answer(0)
end
if count + 1 > 0 then
  publish(how, channel, count + 1)
end
local time = redis.call('TIME')
redis.call('ZREM', KEYS[3], toBytes(id))
redis.call('INCRBY', KEYS[1], 1)
return answer(ends - (time[1] * 1000 + math.floor(time[2] / 1000)) <= 0 and 2 or 1)
