--[[
  interop/redisson/semaphore/acquire: take permits if so many are free, and record who has them.

  The count is what all libraries share; it says how many are free and nothing of who has the others. What this library
  takes is recorded beside it, so that it is taken once however often the request is sent, and comes back when its holder
  dies. Whoever waits is on its own: the wire format has no queue.

  KEYS[1] permits  string, how many are free
  KEYS[2] leases   sorted set, owner -> end of its lease in ms, for those who acquired through this library
  KEYS[3] grants   hash, owner -> <permits>/<token> of each of them
  KEYS[4] timeout  what a semaphore whose permits expire has, and this one must not
  ARGV[1] name     the first key as it must arrive here
  ARGV[2] owner    id of this claim
  ARGV[3] leaseMs  length of the lease
  ARGV[4] amount   how many permits
  ARGV[5] channel  where waiters listen
  ARGV[6] how      plain, sharded or both
  GRANTS  by itself
  REPLY   {0, token}          granted; the token is the server's clock in µs, and orders grants of this library only
          {1, restMs, nowUs}  busy; the first lease of this library's holders ends in restMs, or none is known if -1
          2                   expirable: permits of this name expire
          3                   strange: the key holds no count
          4                   prefixed: a client has put something before the key
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
  -- Whoever had permits had them of a semaphore that is gone.
  redis.call('DEL', KEYS[2], KEYS[3])
  return {1, -1, nowUs}
end

local record = redis.call('HGET', KEYS[3], owner)
if record then
  -- The first reply was lost. The lease is never shortened: this may be a late copy that arrives after an extension.
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
