--[[
  recipes/cache/invalidate: remove the value and revoke a running load.

  The token keeps rising, so a load that has already begun stores nothing. A retry with the same request id changes
  nothing.

  KEYS[1] entry    hash, see recipes/cache/look
  ARGV[1] request  id of this request
  ARGV[2] keepMs   how long the request is remembered
  ARGV[3] channel  channel that waiting processes subscribe to
  ARGV[4] message  message to them
  REPLY   {1}  invalidated
]]
local request, keepMs, channel, message = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local entry = redis.call('HMGET', KEYS[1], 'token', 'invalidated', 'waited')
if entry[2] == request then
  return {1}
end
local time = redis.call('TIME')
local token = math.max(time[1] * 1000000 + time[2], tonumber(entry[1] or 0) + 1)
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'token', string.format('%.0f', token), 'invalidated', request)
redis.call('PEXPIRE', KEYS[1], keepMs)
if entry[3] then
  redis.pcall('PUBLISH', channel, message)
end
return {1}
