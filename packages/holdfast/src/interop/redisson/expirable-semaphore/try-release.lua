--[[
  interop/redisson/expirable-semaphore/try-release: give back a permit that the caller names by its id, whoever acquired it.

  One that is over but was not reaped yet comes back all the same, as Redisson does it; there the caller is told that it
  was refused, here that it was late.

  KEYS[1] permits  string, how many are free
  KEYS[2] request  string, the answer to this request if it was carried out before
  KEYS[3] timeout  sorted set, id of a permit, 16 bytes -> end of its lease in ms
  ARGV[1] name     the first key as it must arrive here
  ARGV[2] id       of the permit, 32 hexadecimal digits
  ARGV[3] keepMs   how long the answer is remembered
  ARGV[4] channel  where waiters listen
  ARGV[5] how      plain, sharded or both
  REPLY   {0, value}  done: 1 if it was held, 2 if its lease was over, 0 if nobody has that permit
          3           strange: the key holds no count
          4           prefixed: a client has put something before the key
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
