--[[
  recipes/cache/fill: store a loaded value if this load still owns the entry, and notify waiting processes.

  If another load took over, or if the entry was invalidated, the token has changed and the script stores nothing. A
  retry with the same owner changes nothing and gets the same reply.

  KEYS[1] entry    hash, see recipes/cache/look
  ARGV[1] owner    id of the attempt
  ARGV[2] token    token of its load
  ARGV[3] value    the loaded value
  ARGV[4] freshMs  how long the value is fresh; 0 to publish it without storing it
  ARGV[5] staleMs  how long after that the value may be used while another process reloads it
  ARGV[6] channel  channel that waiting processes subscribe to
  ARGV[7] message  message to them
  REPLY   {1}  filled
          {2}  superseded
]]
local owner, token, value, freshMs, staleMs, channel, message = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV[6], ARGV[7]

local entry = redis.call('HMGET', KEYS[1], 'owner', 'token', 'waited', 'filled')
if entry[4] == owner then
  return {1}
end
if entry[1] ~= owner or entry[2] ~= token then
  return {2}
end
redis.call('HDEL', KEYS[1], 'value', 'owner', 'until', 'waited', 'failures', 'failed', 'verdict')
redis.call('HSET', KEYS[1], 'filled', owner)
if freshMs > 0 then
  local time = redis.call('TIME')
  local freshUs = time[1] * 1000000 + time[2] + freshMs * 1000
  redis.call('HSET', KEYS[1], 'value', value, 'fresh', string.format('%.0f', freshUs), 'stale', string.format('%.0f', freshUs + staleMs * 1000))
  redis.call('PEXPIRE', KEYS[1], freshMs + staleMs)
end
if entry[3] then
  redis.pcall('PUBLISH', channel, message)
end
return {1}
