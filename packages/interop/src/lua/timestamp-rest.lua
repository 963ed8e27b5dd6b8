--[[
  lua/timestamp-rest: how much longer an existing lock counts as held: until the time in its value or until its expiry,
  whichever is sooner.

  Compares in the unit of the value, as the other clients do. Returns whether it is held and for how many more ms; -1
  if it has no end.

  Uses KEYS[1] lock; and nowMs, unitMs, marginMs, reached.
]]
local function heldFor(units)
  local livesMs = redis.call('PTTL', KEYS[1])
  if unitMs == 0 then
    return true, livesMs
  end
  local restMs = (units + 1 - reached) * unitMs + marginMs - nowMs
  if livesMs >= 0 and restMs > livesMs then
    restMs = livesMs
  end
  return restMs > 0, restMs
end
