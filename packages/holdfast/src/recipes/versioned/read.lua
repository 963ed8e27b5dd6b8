--[[
  recipes/versioned/read: the value as it is. Changes nothing.

  KEYS[1] record  hash: version, value; without the value it was deleted
  REPLY   {1, version, value...}  state: version 0 if there never was one
]]
local record = redis.call('HMGET', KEYS[1], 'version', 'value')
if record[2] then
  return {1, tonumber(record[1]), record[2]}
end
return {1, tonumber(record[1] or 0)}
