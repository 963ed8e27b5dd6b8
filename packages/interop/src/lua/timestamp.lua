--[[
  lua/timestamp: the value that clients of other systems read and write, and the record beside it that names the
  owner.

  The record is `<value> <sinceMs> <token> <owner>`: what its writer wrote to the lock, when the lock was granted, the
  token and the owner id. Clients of other systems do not know it. A claim owns the lock if the record names the claim
  and the lock has the value of the record.

  Uses KEYS[1] lock, KEYS[2] record; and unitMs, which is 0 for a lock whose value is not a time, and nowMs.
]]
-- Returns nil if the key has a different type, and false if it does not exist.
local function readValue()
  local found = redis.pcall('GET', KEYS[1])
  if type(found) ~= 'table' then
    return found
  end
  if not string.find(found.err, 'WRONGTYPE', 1, true) then
    -- The command was refused, for example because a permission is missing. Repeats it to raise the error.
    redis.call('GET', KEYS[1])
  end
end

-- Returns nil if there is no record.
local function readRecord()
  local value, sinceMs, token, owner = string.match(redis.call('GET', KEYS[2]) or '', '^(%S+) (%d+) (%d+) (%S+)$')
  return value, sinceMs, token, owner
end

-- The whole seconds or milliseconds of a value; nil or false if it is not a number, or has the other unit.
local function unitsOf(value)
  local whole = string.match(value, '^(%d+)$') or (unitMs == 1000 and string.match(value, '^(%d+)%.%d+$'))
  local units = whole and #whole <= 15 and tonumber(whole)
  if units and (units < 100000000000) == (unitMs == 1000) then
    return units
  end
end

-- Whether the writer of a record may still be active, given that its clock and the server's may differ by `skewMs`.
local function isLive(value, skewMs)
  if unitMs == 0 then
    return redis.call('PTTL', KEYS[2]) > 0
  end
  local units = unitsOf(value)
  return units ~= nil and units * unitMs - skewMs > nowMs
end

-- The state of the lock, for the claim that the record names: own, deleted, overwritten or claimed. A client that saw
-- an expired value may overwrite the lock too late, with a value that it computed before the grant. Such a value ends
-- earlier than any value computed since. A claim that finds a later value has lost the lock.
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
