--[[
  interop/redisson/expirable-semaphore/acquire: take permits if so many are free, each under an id that was never used.

  Who has a permit stands in a sorted set that all libraries share, so a second copy of the request finds its own ids and
  takes nothing more. Permits whose time is over come back first, whoever had them.

  KEYS[1] permits  string, how many are free
  KEYS[2] timeout  sorted set, id of a permit, 16 bytes -> end of its lease in ms, 922337203685477 if it has none
  KEYS[3] leases   what this library records of a plain semaphore, and this one must not have
  ARGV[1] name     the first key as it must arrive here
  ARGV[2] ids      of the permits, 32 hexadecimal digits each
  ARGV[3] leaseMs  length of the lease
  ARGV[4] amount   how many permits
  ARGV[5] channel  where waiters listen
  ARGV[6] how      plain, sharded or both
  GRANTS  by itself
  REPLY   {0, token}          granted; the token is the server's clock in µs, and orders grants of this library only
          {1, restMs, nowUs}  busy; the first lease ends in restMs, or none does if -1
          2                   plain: there is a plain semaphore of this name
          3                   strange: the key holds no count
          4                   prefixed: a client has put something before the key
]]
local name, ids, leaseMs, amount = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local channel, how = ARGV[5], ARGV[6]

-- include redisson-count
if redis.call('EXISTS', KEYS[3]) == 1 then
  return 2
end
local time = redis.call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local now = math.floor(nowUs / 1000)
-- include redisson-ids
if redis.call('ZSCORE', KEYS[2], toBytes(string.sub(ids, 1, 32))) then
  -- The first reply was lost. The lease is never shortened: this may be a late copy that arrives after an extension.
  for id in string.gmatch(ids, string.rep('%x', 32)) do
    redis.call('ZADD', KEYS[2], 'XX', 'GT', now + leaseMs, toBytes(id))
  end
  return {0, nowUs}
end
-- include redisson-publish
-- include redisson-reap
for _ = 1, 10 do
  if not reap() or count >= amount then
    break
  end
end
if count < amount then
  local first = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2]
  local isEndless = not first or tonumber(first) >= 922337203685477
  return {1, isEndless and -1 or math.max(0, first - now), nowUs}
end

redis.call('INCRBY', KEYS[1], -amount)
for id in string.gmatch(ids, string.rep('%x', 32)) do
  redis.call('ZADD', KEYS[2], now + leaseMs, toBytes(id))
end
local leftMs = redis.call('PTTL', KEYS[1])
if leftMs > 0 then
  redis.call('PEXPIRE', KEYS[2], leftMs)
else
  -- Somebody may have taken the end from the count: its permits would be lost with this set.
  redis.call('PERSIST', KEYS[2])
end
return {0, nowUs}
