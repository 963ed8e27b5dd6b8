--[[
  recipes/cache/leave: give up a load without counting a failure.

  KEYS[1] entry    hash, see recipes/cache/look
  ARGV[1] owner    id of the attempt
  ARGV[2] channel  channel that waiting processes subscribe to
  ARGV[3] message  message to them
  REPLY   {1}  left
          {2}  absent: the load does not belong to this attempt
]]
local owner, channel, message = ARGV[1], ARGV[2], ARGV[3]

local entry = redis.call('HMGET', KEYS[1], 'owner', 'waited')
if entry[1] ~= owner then
  return {2}
end
redis.call('HDEL', KEYS[1], 'owner', 'until', 'waited')
if entry[2] then
  redis.pcall('PUBLISH', channel, message)
end
return {1}
