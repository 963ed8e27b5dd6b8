--[[
  count-down-latch/set-count: set the count, if none is set or it has reached zero.

  A new count begins a new generation, so that a waiter continues even if it does not know yet that the last count
  reached zero. A generation is the server's time in microseconds, or the last generation + 1 if that is higher, so no
  generation is used twice. A repeated request gets the same reply and changes nothing.

  KEYS[1] latch    hash: count, initial, generation, setBy
  KEYS[2] counted  sorted set, caller that counted -> generation; request -> time of its execution; the id of a refused
                   request has the prefix `-`
  ARGV[1] count    number of count-downs that open the latch
  ARGV[2] request  id of this request
  ARGV[3] keepMs   lifetime of the keys from now
  REPLY   0        refused: the current count has not reached zero
          1        set
]]
local count, request, keepMs = ARGV[1], ARGV[2], ARGV[3]

local latch = redis.call('HMGET', KEYS[1], 'count', 'generation', 'setBy')
if latch[3] == request or redis.call('ZSCORE', KEYS[2], request) then
  return 1
end
-- The records in `counted` keep their lifetime even if this `keepMs` is shorter than that of another process.
local restMs = math.max(redis.call('PTTL', KEYS[1]), redis.call('PTTL', KEYS[2]), tonumber(keepMs))
local time = redis.call('TIME')
local generation = time[1] * 1000000 + time[2]
local refused = '-' .. request
if redis.call('ZSCORE', KEYS[2], refused) then
  return 0
end
if latch[1] and latch[1] ~= '0' then
  -- Record the refusal, so that a late copy of this request does not set the count after it has reached zero.
  redis.call('ZADD', KEYS[2], generation, refused)
  redis.call('PEXPIRE', KEYS[2], restMs)
  return 0
end

if latch[2] and latch[2] - generation >= 0 then
  generation = latch[2] + 1
end
-- A late copy of a request may arrive, so the requests of the last generation and of the last 10 minutes are kept.
local forgottenUs = math.min(tonumber(latch[2] or generation), generation - 600000000)
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('(%.0f', forgottenUs))
redis.call('ZADD', KEYS[2], generation, request)
redis.call('PEXPIRE', KEYS[2], restMs)
redis.call('HSET', KEYS[1], 'count', count, 'initial', count, 'generation', generation, 'setBy', request)
redis.call('PEXPIRE', KEYS[1], keepMs)
return 1
