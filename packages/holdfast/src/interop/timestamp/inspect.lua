--[[
  interop/timestamp/inspect: who holds the lock. Changes nothing.

  Two may be shown: one of our clients that may still work, though the value under the key is that of another client. Who
  of the two has it is not to be seen from here; each can be released by force by its own name.

  KEYS[1] lock      string, as the clients of the other system read it
  KEYS[2] record    string, which of our claims has written it
  KEYS[3] fence     string, last token issued to our clients
  ARGV[1] unitMs    what the value counts: 1000, 1; 0 if it is no time
  ARGV[2] skewMs    how far the clocks may differ
  ARGV[3] marginMs  how much longer than its value says a lock counts as held
  ARGV[4] reached   1 if a value that is reached is over, 0 if it has to be passed
  REPLY   {0, token}                    free; the last token of ours, 0 if none is on record
          {1, token, restMs, words...}  own: held by one of our clients, whose owner is the word
          {2, token, restMs, words...}  foreign: held by another, whose value is the word; restMs is -1 if it has no end
          {3, words...}                 alien: what stands there is no lock of this kind
          {4, token, restMs, otherMs, words...}  both: held by one of our clients, whose owner is the first word, as far as
                                        its clock tells; and by the value of another, which is the second and ends in otherMs
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
