--[[
  count-down-latch/count-down: take something off the count, once for each id; at zero, tell all who wait.

  One step, so that exactly one count-down reaches zero, and nobody who waits by then is left out. A request counts once
  ever, so that a copy that arrives when a new count is set does no harm; a caller's id counts once in each generation.

  KEYS[1] latch    hash, count, initial, generation and setBy
  KEYS[2] counted  sorted set, caller that counted -> generation; request -> when it was carried out
  KEYS[3] waiters  sorted set, owner of a claim that waits -> arrival number
  ARGV[1] request  id of this request, beginning with /
  ARGV[2] caller   the caller's id, beginning with :, or empty
  ARGV[3] by       how much to take off, 1 or more
  ARGV[4] keepMs   how long the keys live from now
  ARGV[5] inbox    what a client id is appended to for the channel that the client listens on
  REPLY   count    counted: what is left, or was left if this id has counted before
]]
local request, caller, by, keepMs, inbox = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local latch = redis.call('HMGET', KEYS[1], 'count', 'generation')
local count, generation = tonumber(latch[1] or 0), latch[2]
if redis.call('ZSCORE', KEYS[2], request) then
  return count
end
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000000 + time[2])
-- Also if it does nothing now: a copy that arrives when a new count is set is to do nothing either.
redis.call('ZADD', KEYS[2], now, request)
-- Never shortened: whoever waits counts on finding it, and another process may keep it for longer.
local restMs = math.max(redis.call('PTTL', KEYS[1]), tonumber(keepMs))
redis.call('PEXPIRE', KEYS[2], math.max(redis.call('PTTL', KEYS[2]), restMs))
if count == 0 then
  -- As when a count is set; else a latch that nobody sets would remember for ever.
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
  -- The bound keeps the call short; whoever is beyond it finds out when it asks.
  for _, waiter in ipairs(redis.call('ZRANGE', KEYS[3], 0, 9999)) do
    local client, number = string.match(waiter, '^([^/]+)/(%d+)/%d+/%d+')
    if client then
      redis.pcall('PUBLISH', inbox .. client, '+' .. number .. ' ' .. generation .. ' ' .. now)
    end
  end
  redis.call('DEL', KEYS[3])
end
return count
