--[[
  lua/redisson-field: read the hash of a lock, whose key may be of a different type.

  KEYS[1] is the hash. Raises an error if the user lacks permission. Only a key of a different type is a regular result.
]]
-- Returns 1 or 0, or nil if the key has another type.
local function has(field)
  local found = redis.pcall('HEXISTS', KEYS[1], field)
  if type(found) ~= 'table' then
    return found
  end
  if not string.find(found.err, 'WRONGTYPE', 1, true) then
    -- Repeats the command to raise the error.
    redis.call('HEXISTS', KEYS[1], field)
  end
end
