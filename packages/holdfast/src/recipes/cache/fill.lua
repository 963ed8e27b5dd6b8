--[[
  recipes/cache/fill: keep what was loaded, if the load is still the one that the entry waits for, and tell those who wait.

  A load that was overtaken by another, or that began before an invalidation, has another token by now, and fills nothing.
  Sent again it changes nothing and gives the same answer.

  KEYS[1] entry    hash, see recipes/cache/look
  ARGV[1] owner    id of the attempt
  ARGV[2] token    of its load
  ARGV[3] value    what it has loaded
  ARGV[4] freshMs  how long it is fresh; 0 to tell it and keep nothing
  ARGV[5] staleMs  how long it may be given after that while somebody loads anew
  ARGV[6] channel  where those listen who wait
  ARGV[7] message  what they are told
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
