--[[
  interop/redisson/semaphore/acquire: take permits if enough are free, and record their holder.

  All libraries share only the count of free permits, which does not identify holders. Holdfast records the permits that
  it takes in separate keys. So they are taken once, however often the request is sent, and come back if their holder
  crashes. There is no queue, because the wire format has none.

  KEYS[1] permits  string, number of free permits
  KEYS[2] leases   sorted set, owner -> end of its lease in ms, for Holdfast holders
  KEYS[3] grants   hash, owner -> <permits>/<token>, for Holdfast holders
  KEYS[4] timeout  key of a semaphore with permits that expire; must not exist
  ARGV[1] name     the first key, without any prefix that a client adds
  ARGV[2] owner    id of this claim
  ARGV[3] leaseMs  length of the lease
  ARGV[4] amount   number of permits
  ARGV[5] channel  channel of the waiters
  ARGV[6] how      plain, sharded or both
  GRANTS  by itself
  REPLY   {0, token}          granted; the token is the server's clock in µs, which orders only grants of Holdfast
          {1, restMs, nowUs}  busy; the first lease of a Holdfast holder ends in restMs, or none is known if -1
          2                   expirable: the name belongs to a semaphore with permits that expire
          3                   strange: the value of the key is not a count
          4                   prefixed: the client added a prefix to the key
]]
local name, owner, leaseMs, amount = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local channel, how = ARGV[5], ARGV[6]

-- include redisson-count
if redis.call('EXISTS', KEYS[4]) == 1 then
  return 2
end
local time = redis.call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local now = math.floor(nowUs / 1000)
if not text then
  -- The recorded permits belong to a semaphore that no longer exists.
  redis.call('DEL', KEYS[2], KEYS[3])
  return {1, -1, nowUs}
end

local record = redis.call('HGET', KEYS[3], owner)
if record then
  -- The first reply was lost. The lease is never shortened: this may be a late copy of the request that arrives after
  -- an extension.
  redis.call('ZADD', KEYS[2], 'GT', now + leaseMs, owner)
  return {0, tonumber(string.match(record, '%d+$'))}
end
-- include redisson-publish
-- include redisson-leases
for _ = 1, 10 do
  if not takeBack() or count >= amount then
    break
  end
end
if count < amount then
  local first = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')[2]
  return {1, first and math.max(0, first - now) or -1, nowUs}
end

redis.call('INCRBY', KEYS[1], -amount)
redis.call('ZADD', KEYS[2], now + leaseMs, owner)
redis.call('HSET', KEYS[3], owner, string.format('%.0f/%.0f', amount, nowUs))
-- include redisson-life
return {0, nowUs}
