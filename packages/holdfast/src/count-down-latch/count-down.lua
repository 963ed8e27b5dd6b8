--[[
  count-down-latch/count-down: decrease the count, once for each id; at zero, notify all waiters.

  This is one atomic step, so that exactly one count-down reaches zero, and no waiter misses it. A request never counts
  twice, so a copy that arrives after a new count is set does no harm. A caller id counts once in each generation.

  KEYS[1] latch    hash: count, initial, generation, setBy
  KEYS[2] counted  sorted set, caller that counted -> generation; request -> time of its execution
  KEYS[3] waiters  sorted set, owner of a waiting claim -> arrival number
  ARGV[1] request  id of this request; begins with `/`
  ARGV[2] caller   `:` and the caller's id; or empty
  ARGV[3] by       amount to subtract, 1 or more
  ARGV[4] keepMs   lifetime of the keys from now
  ARGV[5] inbox    prefix of inbox channels; a client's channel is the prefix plus the client id
  REPLY   count    counted: the current count, which is unchanged if this id has counted before
]]
local request, caller, by, keepMs, inbox = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local latch = redis.call('HMGET', KEYS[1], 'count', 'generation')
local count, generation = tonumber(latch[1] or 0), latch[2]
if redis.call('ZSCORE', KEYS[2], request) then
  return count
end
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000000 + time[2])
-- The request is recorded even if it does nothing now, so that a copy that arrives after a new count is set does
-- nothing either.
redis.call('ZADD', KEYS[2], now, request)
-- Never shorten the lifetime, because waiters rely on the count, and another process may use a longer `keepMs`.
local restMs = math.max(redis.call('PTTL', KEYS[1]), tonumber(keepMs))
redis.call('PEXPIRE', KEYS[2], math.max(redis.call('PTTL', KEYS[2]), restMs))
if count == 0 then
  -- Forget old requests, as set-count does. Otherwise a latch whose count is never set would keep them forever.
  local forgottenUs = math.min(tonumber(generation or now), now - 600000000)
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('(%.0f', forgottenUs))
  return 0
end
if caller ~= '' then
  local counted = redis.call('ZSCORE', KEYS[2], caller)
  if counted and counted - generation == 0 then
    return count
  end
  redis.call('ZADD', KEYS[2], generation, caller)
end

count = math.max(0, count - by)
redis.call('HSET', KEYS[1], 'count', string.format('%.0f', count))
redis.call('PEXPIRE', KEYS[1], restMs)
if count == 0 then
  -- The limit keeps the call short. The other waiters learn that the count is zero when they ask again.
  for _, waiter in ipairs(redis.call('ZRANGE', KEYS[3], 0, 9999)) do
    local client, number = string.match(waiter, '^([^/]+)/(%d+)/%d+/%d+')
    if client then
      redis.pcall('PUBLISH', inbox .. client, '+' .. number .. ' ' .. generation .. ' ' .. now)
    end
  end
  redis.call('DEL', KEYS[3])
end
return count
