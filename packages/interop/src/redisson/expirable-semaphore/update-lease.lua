--[[
  interop/redisson/expirable-semaphore/update-lease: change when the lease of any client's permit ends.

  Unlike a renewal, this can end the lease sooner, or let it never end.

  KEYS[1] permits  string, number of free permits
  KEYS[2] timeout  sorted set, id of a permit, 16 bytes -> end of its lease in ms, 922337203685477 if it never ends
  ARGV[1] name     the first key, without any prefix that a client adds
  ARGV[2] id       id of the permit, 32 hexadecimal digits
  ARGV[3] leaseMs  length of the lease from now; -1 for no end
  ARGV[4] channel  channel of the waiters
  ARGV[5] how      plain, sharded or both
  REPLY   {0, value}  done: 1 if the permit was held, 0 if not
          3           strange: the value of the key is not a count
          4           prefixed: the client added a prefix to the key
]]
local name, id, leaseMs, channel, how = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]

-- include redisson-count
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- include redisson-publish
-- include redisson-reap
-- include redisson-ids
reap()
local ends = redis.call('ZSCORE', KEYS[2], toBytes(id))
if not ends or ends - now <= 0 then
  return {0, 0}
end
-- A server at its memory limit accepts this command, and then all later writes of this script (docs/adr/135).
redis.call('ZREM', KEYS[2], '')
redis.call('ZADD', KEYS[2], leaseMs < 0 and '922337203685477' or now + leaseMs, toBytes(id))
return {0, 1}
