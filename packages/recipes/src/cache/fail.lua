--[[
  recipes/cache/fail: end a load that has failed, and let one waiting process try, or report the error to all.

  If there is a stale value that may still be used, no process waits. In that case, no new load is granted for pauseMs,
  so that processes do not keep querying a source that is down. A retry with the same owner gets the same reply.

  KEYS[1] entry     hash, see recipes/cache/look
  ARGV[1] owner     id of the attempt
  ARGV[2] attempts  number of failures after which no process tries again
  ARGV[3] pauseMs   how long no load is granted while there is a stale value
  ARGV[4] channel   channel that waiting processes subscribe to
  ARGV[5] again     message if one of them may try
  ARGV[6] over      message if that was the last attempt
  REPLY   {1}  counted: one waiting process may try
          {2}  exhausted: that was the last attempt
          {3}  superseded: the load no longer belongs to this attempt
]]
local owner, attempts, pauseMs, channel, again, over = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], ARGV[5], ARGV[6]

local entry = redis.call('HMGET', KEYS[1], 'owner', 'failures', 'failed', 'verdict', 'waited', 'value', 'stale')
if entry[3] == owner then
  return {tonumber(entry[4])}
end
if entry[1] ~= owner then
  return {3}
end
local verdict, failures, message = 1, tonumber(entry[2] or 0) + 1, again
if failures >= attempts then
  verdict, failures, message = 2, 0, over
end
redis.call('HDEL', KEYS[1], 'owner', 'until', 'waited')
redis.call('HSET', KEYS[1], 'failures', failures, 'failed', owner, 'verdict', verdict)
local time = redis.call('TIME')
local nowUs = time[1] * 1000000 + time[2]
if entry[6] and tonumber(entry[7] or 0) > nowUs then
  redis.call('HSET', KEYS[1], 'until', string.format('%.0f', nowUs + pauseMs * 1000))
end
if entry[5] then
  redis.pcall('PUBLISH', channel, message)
end
return {verdict}
