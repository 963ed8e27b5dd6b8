--[[
  interop/redisson/expirable-semaphore/acquire: take permits if enough are free, each under a unique id.

  All libraries share a sorted set of the held permits. So a second copy of the request finds its own ids and takes no
  more permits. Permits whose lease has ended are taken back first, no matter which client held them.

  KEYS[1] permits  string, number of free permits
  KEYS[2] timeout  sorted set, id of a permit, 16 bytes -> end of its lease in ms, 922337203685477 if it never ends
  KEYS[3] leases   record of a plain semaphore; must not exist
  ARGV[1] name     the first key, without any prefix that a client adds
  ARGV[2] ids      ids of the permits, 32 hexadecimal digits each
  ARGV[3] leaseMs  length of the lease
  ARGV[4] amount   number of permits
  ARGV[5] channel  channel of the waiters
  ARGV[6] how      plain, sharded or both
  GRANTS  by itself
  REPLY   {0, token}          granted; the token is the server's clock in µs, which orders only grants of Holdfast
          {1, restMs, nowUs}  busy; the first lease ends in restMs, or no lease ends if -1
          2                   plain: the name belongs to a plain semaphore
          3                   strange: the value of the key is not a count
          4                   prefixed: the client added a prefix to the key
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
  -- The first reply was lost. The lease is never shortened: this may be a late copy of the request that arrives after
  -- an extension.
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
  -- The expiry of the count may have been removed. If this set still expired, its permits would be lost.
  redis.call('PERSIST', KEYS[2])
end
return {0, nowUs}
