--[[
  interop/redisson/expirable-semaphore/try-release-all: release several permits by their ids, all or none.

  KEYS[1] permits  string, number of free permits
  KEYS[2] request  string, the reply to this request if it has already run
  KEYS[3] timeout  sorted set, id of a permit, 16 bytes -> end of its lease in ms
  ARGV[1] name     the first key, without any prefix that a client adds
  ARGV[2] ids      ids of the permits, 32 hexadecimal digits each, all different
  ARGV[3] keepMs   how long the reply is remembered
  ARGV[4] channel  channel of the waiters
  ARGV[5] how      plain, sharded or both
  REPLY   {0, value}  done: 1 if all were held; 0 if one was not held or its lease had ended, and then none is released
          3           strange: the value of the key is not a count
          4           prefixed: the client added a prefix to the key
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
-- Like Redisson, publishes the number of released permits here, but the number of free permits in `try-release`.
publish(how, channel, held)
for id in string.gmatch(ids, string.rep('%x', 32)) do
  redis.call('ZREM', KEYS[3], toBytes(id))
end
redis.call('INCRBY', KEYS[1], held)
return answer(1)
