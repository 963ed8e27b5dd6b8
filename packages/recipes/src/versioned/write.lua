--[[
  recipes/versioned/write: set or delete the value, if it still has the version that the writer has read.

  Versions only rise: a new version is the server's time in microseconds, or the last version + 1 if that is more. The
  version of a deleted value is kept for buryMs. A repeated request is recognized by its id, even if the value has been
  written since. Clients may use different values of rememberMs; a request is then remembered for at least half the time
  that its client asked for.

  KEYS[1] record    hash: version, value; without a value it was deleted
  KEYS[2] requests  sorted set, ids of recent requests that have written: version
  ARGV[1] version   version that the writer has read; 0 for none, -1 for any
  ARGV[2] request   id of this request
  ARGV[3] rememberMs  how long the id is remembered
  ARGV[4] buryMs    how long the version of a deleted value is kept; 0 to set the value
  ARGV[5] value     the new value
  ARGV[6] channel   channel that watchers subscribe to; the message is the version
  REPLY   {1, version}            written: the new version
          {2, version, value...}  conflict: the current version, and the value, if any
]]
local expected, request, rememberMs, buryMs, value, channel = tonumber(ARGV[1]), ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6]

local won = redis.call('ZSCORE', KEYS[2], request)
if won then
  return {1, tonumber(won)}
end
local record = redis.call('HMGET', KEYS[1], 'version', 'value')
local version = tonumber(record[1] or 0)
if expected >= 0 and expected ~= version then
  if record[2] then
    return {2, version, record[2]}
  end
  return {2, version}
end
if buryMs > 0 and not record[2] then
  return {1, version}
end

local time = redis.call('TIME')
local nowUs = time[1] * 1000000 + time[2]
version = math.max(nowUs, version + 1)
local text = string.format('%.0f', version)
if buryMs > 0 then
  redis.call('HDEL', KEYS[1], 'value')
  redis.call('HSET', KEYS[1], 'version', text)
  redis.call('PEXPIRE', KEYS[1], buryMs)
else
  redis.call('HSET', KEYS[1], 'version', text, 'value', value)
  redis.call('PERSIST', KEYS[1])
end
redis.call('ZADD', KEYS[2], text, request)
if redis.call('PTTL', KEYS[2]) <= tonumber(rememberMs) then
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', nowUs - rememberMs * 1000))
  redis.call('PEXPIRE', KEYS[2], rememberMs)
end
redis.pcall('PUBLISH', channel, text)
return {1, version}
