--[[
  interop/redisson/expirable-semaphore/release: give back those of the permits that are still there, and tell who waits.

  A permit that was reaped meanwhile is in the count already. One that is over but was not reaped comes back by this.

  KEYS[1] permits  string, how many are free
  KEYS[2] timeout  sorted set, id of a permit, 16 bytes -> end of its lease in ms
  ARGV[1] ids      of the permits, 32 hexadecimal digits each
  ARGV[2] channel  where waiters listen
  ARGV[3] how      plain, sharded or both
  REPLY   1        released: all of them
          2        claimed: at least one was not there any more
]]
local ids, channel, how = ARGV[1], ARGV[2], ARGV[3]

-- include redisson-publish
-- include redisson-ids
local there, missing = 0, 0
for id in string.gmatch(ids, string.rep('%x', 32)) do
  if redis.call('ZSCORE', KEYS[2], toBytes(id)) then
    there = there + 1
  else
    missing = missing + 1
  end
end
if there > 0 then
  local count = (redis.call('GET', KEYS[1]) or 0) + there
  if count > 0 then
    publish(how, channel, count)
  end
  for id in string.gmatch(ids, string.rep('%x', 32)) do
    redis.call('ZREM', KEYS[2], toBytes(id))
  end
  redis.call('INCRBY', KEYS[1], there)
end
return missing == 0 and 1 or 2
