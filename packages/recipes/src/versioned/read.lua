--[[
  recipes/versioned/read: the value and its version. Changes nothing.

  KEYS[1] record  hash: version, value; without a value it was deleted
  REPLY   {1, version, value...}  state: version 0 if the value was never set
]]
local record = redis.call('HMGET', KEYS[1], 'version', 'value')
if record[2] then
  return {1, tonumber(record[1]), record[2]}
end
return {1, tonumber(record[1] or 0)}
