--[[
  lua/redisson-field: look at the hash of a lock where the key may be of another type.

  KEYS[1] is the hash. A user who may not look is refused as everywhere: only a key of another type is an answer.
]]
-- 1 or 0; neither if the key is of another type.
local function has(field)
  local found = redis.pcall('HEXISTS', KEYS[1], field)
  if type(found) ~= 'table' then
    return found
  end
  if not string.find(found.err, 'WRONGTYPE', 1, true) then
    -- Asked again, it raises.
    redis.call('HEXISTS', KEYS[1], field)
  end
end
