--[[
  lua/redisson-mode: how a read-write lock is held, where the key may be of something else.

  KEYS[1] is the hash. A user who may not look is refused as everywhere: only a key of another type is an answer.
]]
-- False if it is free; nothing if the key is of something else.
local function modeOf()
  local mode = redis.pcall('HGET', KEYS[1], 'mode')
  if type(mode) == 'table' then
    if not string.find(mode.err, 'WRONGTYPE', 1, true) then
      -- Asked again, it raises.
      redis.call('HGET', KEYS[1], 'mode')
    end
    return nil
  end
  if not mode and redis.call('EXISTS', KEYS[1]) == 1 then
    return nil
  end
  return mode
end
