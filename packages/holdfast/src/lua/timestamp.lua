--[[
  lua/timestamp: the value that clients of other systems read and write, and the record beside it that says whose it is.

  The record is `<value> <sinceMs> <token> <owner>`: what its writer has written to the lock, when it was granted, its token
  and its id. Clients of other systems know nothing of it. A claim owns the lock if the record names it and the lock has
  the value of the record.

  Uses KEYS[1] lock, KEYS[2] record; and unitMs, which is 0 for a lock whose value is no time, and nowMs.
]]
-- Nothing if it is a key of another type, false if there is none.
local function readValue()
  local found = redis.pcall('GET', KEYS[1])
  if type(found) ~= 'table' then
    return found
  end
  if not string.find(found.err, 'WRONGTYPE', 1, true) then
    -- Refused, as to a user who may not: asked again, it raises.
    redis.call('GET', KEYS[1])
  end
end

-- Nothing if there is no record.
local function readRecord()
  local value, sinceMs, token, owner = string.match(redis.call('GET', KEYS[2]) or '', '^(%S+) (%d+) (%d+) (%S+)$')
  return value, sinceMs, token, owner
end

-- The whole seconds or milliseconds of a value; nothing if it is no number, or one of the other unit.
local function unitsOf(value)
  local whole = string.match(value, '^(%d+)$') or (unitMs == 1000 and string.match(value, '^(%d+)%.%d+$'))
  local units = whole and #whole <= 15 and tonumber(whole)
  if units and (units < 100000000000) == (unitMs == 1000) then
    return units
  end
end

-- Whether the writer of a record may still work, as far as its own clock and ours may differ.
local function isLive(value, skewMs)
  if unitMs == 0 then
    return redis.call('PTTL', KEYS[2]) > 0
  end
  local units = unitsOf(value)
  return units ~= nil and units * unitMs - skewMs > nowMs
end

-- What became of the lock of a claim that the record names: own, deleted, overwritten or claimed.
-- A client that saw an expired value, and then came too late, has overwritten the lock with what it computed before we
-- were granted, so its value ends before one that was written since; whoever finds a later one has lost the lock.
local function standing(found, value, sinceMs, skewMs, latestMs)
  if found == value then
    return 'own'
  end
  if found == false then
    return isLive(value, skewMs) and 'deleted' or 'claimed'
  end
  local units = found and latestMs >= 0 and unitsOf(found)
  if units and isLive(value, skewMs) and units * unitMs <= sinceMs + latestMs then
    return 'overwritten'
  end
  return 'claimed'
end
