--[[
  lua/redisson-mode: the mode of a read-write lock, whose key may be of a different type.

  KEYS[1] is the hash. Raises an error if the user lacks permission. Only a key of a different type is a regular result.
]]
-- Returns false if the lock is free, and nil if the key belongs to something else.
local function modeOf()
  local mode = redis.pcall('HGET', KEYS[1], 'mode')
  if type(mode) == 'table' then
    if not string.find(mode.err, 'WRONGTYPE', 1, true) then
      -- Repeats the command to raise the error.
      redis.call('HGET', KEYS[1], 'mode')
    end
    return nil
  end
  if not mode and redis.call('EXISTS', KEYS[1]) == 1 then
    return nil
  end
  return mode
end
