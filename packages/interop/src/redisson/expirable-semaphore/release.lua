--[[
  interop/redisson/expirable-semaphore/release: release the given permits that are still held, and notify waiters.

  A permit that was already taken back is in the count, so the script skips it. The script does release a permit whose
  lease has ended but that has not been taken back yet.

  KEYS[1] permits  string, number of free permits
  KEYS[2] timeout  sorted set, id of a permit, 16 bytes -> end of its lease in ms
  ARGV[1] ids      ids of the permits, 32 hexadecimal digits each
  ARGV[2] channel  channel of the waiters
  ARGV[3] how      plain, sharded or both
  REPLY   1        released: all of them
          2        claimed: at least one was no longer held
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
