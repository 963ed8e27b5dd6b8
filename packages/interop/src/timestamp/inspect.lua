--[[
  interop/timestamp/inspect: return the holders of the lock. Read-only.

  There may be two: a Holdfast client that may still be active, and a foreign client whose value is at the key. The
  server cannot tell which of the two holds the lock. Each can be force-released by its own id.

  KEYS[1] lock      string, as the clients of the other system read it
  KEYS[2] record    string, the Holdfast claim that has written the lock
  KEYS[3] fence     string, last token issued to Holdfast clients
  ARGV[1] unitMs    unit of the value: 1000 or 1; 0 if the value is not a time
  ARGV[2] skewMs    largest difference between clocks
  ARGV[3] marginMs  how long a lock counts as held after its value has ended
  ARGV[4] reached   1 if a lock ends when its time is reached, 0 if the time must have passed
  REPLY   {0, token}                    free; token is the last one of Holdfast, 0 if none is recorded
          {1, token, restMs, words...}  own: a Holdfast client holds the lock; the word is its owner
          {2, token, restMs, words...}  foreign: another client holds the lock; the word is its value; restMs is -1
                                        without an end
          {3, words...}                 alien: the key contains no lock of this kind; the word describes it
          {4, token, restMs, otherMs, words...}  both: a Holdfast client may still hold the lock, and its owner is the
                                        first word; the second word is a foreign value, which ends in otherMs
]]
local unitMs, skewMs, marginMs, reached = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local time = redis.call('TIME')
local nowMs = math.floor((time[1] * 1000000 + time[2]) / 1000)

-- include timestamp
-- include timestamp-rest
local found = readValue()
local value, sinceMs, granted, holder = readRecord()
local last = tonumber(redis.call('GET', KEYS[3]) or 0)
if found == nil then
  return {3, 'a key of another type'}
end
local units = found and unitMs > 0 and unitsOf(found)
if found and unitMs > 0 and not units then
  return {3, string.sub(found, 1, 80)}
end
local isHeld, restMs = false, 0
if found then
  isHeld, restMs = heldFor(units)
end
if value and found == value and isHeld then
  return {1, tonumber(granted), restMs, holder}
end
if value and found ~= value and isLive(value, skewMs) then
  local ownMs = unitMs == 0 and redis.call('PTTL', KEYS[2]) or unitsOf(value) * unitMs - skewMs - nowMs
  if isHeld then
    return {4, tonumber(granted), ownMs, restMs, holder, found}
  end
  return {1, tonumber(granted), ownMs, holder}
end
if isHeld then
  return {2, last, restMs, found}
end
return {0, last}
