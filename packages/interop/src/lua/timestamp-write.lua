--[[
  lua/timestamp-write: write the lease of an owner, never ending it earlier than before.

  Rounds up to the unit, so that a lease is never shorter than requested. The keys outlive the value by graceMs, so
  that the value alone decides when the lease ends.

  Uses KEYS[1] lock, KEYS[2] record; and nowMs, leaseMs, unitMs, padding, before, after, graceMs.
]]
local function write(owner, token, sinceMs, former)
  local value, livesMs = former or after, leaseMs
  if unitMs == 0 then
    livesMs = math.max(leaseMs, former and redis.call('PTTL', KEYS[1]) or 0)
  else
    local units = math.ceil((nowMs + leaseMs) / unitMs) + padding
    if former then
      units = math.max(units, unitsOf(former))
    end
    value = before .. string.format('%.0f', units) .. after
    livesMs = units * unitMs - nowMs + graceMs
  end
  livesMs = string.format('%.0f', livesMs)
  redis.call('SET', KEYS[1], value, 'PX', livesMs)
  redis.call('SET', KEYS[2], value .. ' ' .. sinceMs .. ' ' .. token .. ' ' .. owner, 'PX', livesMs)
end
