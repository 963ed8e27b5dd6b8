--[[
  count-down-latch/set-count: set the count, if none is set or it has reached zero.

  A new count begins a new generation, so that whoever has not yet heard that the last one reached zero still goes on.
  Generations are the server's time in microseconds, or the last + 1 if that is more: none comes twice. Sent again
  with the same request it gives the same answer, and does nothing more.

  KEYS[1] latch    hash, count, initial, generation and setBy
  KEYS[2] counted  sorted set, caller that counted -> generation; request -> when it was carried out, with - before it
                   if it was refused
  ARGV[1] count    how many count-downs open the latch
  ARGV[2] request  id of this request
  ARGV[3] keepMs   how long the keys live from now
  REPLY   0        refused: it has a count that has not reached zero
          1        set
]]
local count, request, keepMs = ARGV[1], ARGV[2], ARGV[3]

local latch = redis.call('HMGET', KEYS[1], 'count', 'generation', 'setBy')
if latch[3] == request or redis.call('ZSCORE', KEYS[2], request) then
  return 1
end
-- What was counted outlives a count that is kept for less, as another process may have asked for.
local restMs = math.max(redis.call('PTTL', KEYS[1]), redis.call('PTTL', KEYS[2]), tonumber(keepMs))
local time = redis.call('TIME')
local generation = time[1] * 1000000 + time[2]
local refused = '-' .. request
if redis.call('ZSCORE', KEYS[2], refused) then
  return 0
end
if latch[1] and latch[1] ~= '0' then
  -- A copy that arrives at zero must not set what its caller was told is not set.
  redis.call('ZADD', KEYS[2], generation, refused)
  redis.call('PEXPIRE', KEYS[2], restMs)
  return 0
end

if latch[2] and latch[2] - generation >= 0 then
  generation = latch[2] + 1
end
-- A request may arrive long after it was given up, so those of the last generation stay, and of the last ten minutes.
local forgottenUs = math.min(tonumber(latch[2] or generation), generation - 600000000)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('(%.0f', forgottenUs))
redis.call('ZADD', KEYS[2], generation, request)
redis.call('PEXPIRE', KEYS[2], restMs)
redis.call('HSET', KEYS[1], 'count', count, 'initial', count, 'generation', generation, 'setBy', request)
redis.call('PEXPIRE', KEYS[1], keepMs)
return 1
