--[[
  recipes/once/save: keep how far an attempt has come, for the attempt after it.

  KEYS[1] record  hash, see recipes/once/begin
  ARGV[1] owner   id of the attempt
  ARGV[2] data    the recovery point
  REPLY   {1}  saved
          {2}  superseded: the call is not this attempt's any more
]]
local record = redis.call('HMGET', KEYS[1], 'state', 'owner')
if record[1] ~= 'running' or record[2] ~= ARGV[1] then
  return {2}
end
redis.call('HSET', KEYS[1], 'saved', ARGV[2])
return {1}
