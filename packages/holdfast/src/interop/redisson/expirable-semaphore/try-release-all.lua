--[[
  interop/redisson/expirable-semaphore/try-release-all: give back several permits by their ids, all or none.

  KEYS[1] permits  string, how many are free
  KEYS[2] request  string, the answer to this request if it was carried out before
  KEYS[3] timeout  sorted set, id of a permit, 16 bytes -> end of its lease in ms
  ARGV[1] name     the first key as it must arrive here
  ARGV[2] ids      of the permits, 32 hexadecimal digits each, none twice
  ARGV[3] keepMs   how long the answer is remembered
  ARGV[4] channel  where waiters listen
  ARGV[5] how      plain, sharded or both
  REPLY   {0, value}  done: 1 if all were held; 0 if one was not, or was over, and then nothing was given back
          3           strange: the key holds no count
          4           prefixed: a client has put something before the key
]]
local name, ids, keepMs, channel, how = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- include redisson-count
-- include redisson-once
-- include redisson-publish
-- include redisson-ids
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local held = 0
for id in string.gmatch(ids, string.rep('%x', 32)) do
  local ends = redis.call('ZSCORE', KEYS[3], toBytes(id))
  if not ends or ends - now <= 0 then
    return answer(0)
  end
  held = held + 1
end
-- How many came back, where one that comes back alone tells how many there are: as Redisson does it.
publish(how, channel, held)
for id in string.gmatch(ids, string.rep('%x', 32)) do
  redis.call('ZREM', KEYS[3], toBytes(id))
end
redis.call('INCRBY', KEYS[1], held)
return answer(1)
