--[[
  interop/redisson/fair/acquire: take the fair lock of Redisson if it is free and nobody stands before us; else queue for it.

  Deadlines are by the clock of the server: those of clients disagree, and would push live waiters out. Whoever takes the lock
  takes its own wait off the deadlines of all who stay, as Redisson does: it had put it on theirs.

  KEYS[1] lock     hash, owner -> hold count; expires with the lease
  KEYS[2] queue    list, owners in the order in which they came
  KEYS[3] timeout  sorted set, owner -> until when it keeps its place, in ms since 1970
  ARGV[1] name     the first key as it must arrive here
  ARGV[2] owner    id of the claim
  ARGV[3] leaseMs  length of the lease
  ARGV[4] waitMs   how long the claim keeps its place after those before it are gone
  ARGV[5] enqueue  1 to queue if it is not free
  GRANTS  by itself
  REPLY   {1, token}          granted; the token is the time of the server in µs
          {2, restMs, nowUs}  waiting: restMs until the next event that needs no message, -1 if there is none
          {5, restMs, nowUs}  refused: without a place in the queue
          3                   mistyped: the key is of something else
          4                   prefixed: a client has put something before the key
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
-- Free, and somebody stands before us: unless it takes the lock, its place ends.
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
