--[[
  interop/redisson/fair/acquire: take the fair lock if it is free and the claim is first; otherwise queue for it.

  Deadlines use the server's clock, because with the clocks of clients, which differ, live waiters could lose their
  places. A claim that takes the lock subtracts its own wait from the deadlines of the remaining waiters, as Redisson
  does, because their deadlines include that wait.

  KEYS[1] lock     hash, owner -> hold count; expires with the lease
  KEYS[2] queue    list, owners in order of arrival
  KEYS[3] timeout  sorted set, owner -> deadline of its place, in ms since 1970
  ARGV[1] name     the first key, without any prefix that a client adds
  ARGV[2] owner    id of the claim
  ARGV[3] leaseMs  length of the lease
  ARGV[4] waitMs   how long the claim keeps its place after the deadline of the waiter before it
  ARGV[5] enqueue  1 to queue if the lock is not available
  GRANTS  by itself
  REPLY   {1, token}          granted; the token is the server's clock in µs
          {2, restMs, nowUs}  waiting: restMs until the lease or the first waiter's place expires, -1 if never
          {5, restMs, nowUs}  refused, without a place in the queue
          3                   mistyped: the key belongs to an object of a different type
          4                   prefixed: the client added a prefix to the key
]]
local name, owner, leaseMs, waitMs, enqueue = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- include redisson-fair
-- include redisson-field
if not rawequal(name, KEYS[1]) then
  return 4
end
if has('mode') ~= 0 then
  return 3
end

local time = redis.call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local nowMs = math.floor(nowUs / 1000)
local isOurs = redis.call('HEXISTS', KEYS[1], owner) == 1
local head, deadline = headOfQueue(nowMs)
local isFree = redis.call('EXISTS', KEYS[1]) == 0
if isOurs or (isFree and (not head or head == owner)) then
  if not isOurs then
    redis.call('LPOP', KEYS[2])
    redis.call('ZREM', KEYS[3], owner)
    for _, waiter in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
      redis.call('ZINCRBY', KEYS[3], -waitMs, waiter)
    end
    redis.call('HSET', KEYS[1], owner, 1)
  end
  if redis.call('PTTL', KEYS[1]) - leaseMs < 0 then
    redis.call('PEXPIRE', KEYS[1], leaseMs)
  end
  return {1, nowUs}
end

local leftMs = redis.call('PTTL', KEYS[1])
-- If the lock is free, another waiter is first. That waiter takes the lock, or loses its place at its deadline.
local restMs = isFree and math.ceil(deadline - nowMs) or leftMs
if enqueue ~= '1' then
  return {5, restMs, nowUs}
end
if not redis.call('ZSCORE', KEYS[3], owner) then
  local last = redis.call('LINDEX', KEYS[2], -1)
  local lastDeadline = last and last ~= owner and redis.call('ZSCORE', KEYS[3], last)
  local untilMs = lastDeadline and lastDeadline - nowMs or math.max(0, leftMs)
  redis.call('ZADD', KEYS[3], nowMs + untilMs + waitMs, owner)
  redis.call('RPUSH', KEYS[2], owner)
end
return {2, restMs, nowUs}
