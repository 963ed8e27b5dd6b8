--[[
  interop/timestamp/acquire: take the lock if it is free, or if the time in its value is over.

  One step with the server's clock, so that of all who see an expired value one wins, and nothing is written by whoever
  does not. Sent again with the same owner it gives the same answer, and the lease begins anew.

  The record counts among our own clients: whoever it names may still work, though a client of another system has deleted
  the lock by mistake, or has overwritten it.

  KEYS[1] lock       string, as the clients of the other system read it
  KEYS[2] record     string, which of our claims has written it
  KEYS[3] fence      string, last token issued to our clients
  ARGV[1] owner      id of this claim
  ARGV[2] leaseMs    length of the lease on the server
  ARGV[3] unitMs     what the value counts: 1000, 1; 0 if it is no time
  ARGV[4] padding    so many units are added
  ARGV[5] before     what stands before the number
  ARGV[6] after      what stands after it; the whole value if it is no time
  ARGV[7] graceMs    how much longer the key lives than its value says
  ARGV[8] fenceMs    how long the fence outlives the grant
  ARGV[9] skewMs     how far the clocks may differ
  ARGV[10] latestMs  how long after our grant a value ends that was computed before it, at the latest; -1 if there are none
  ARGV[11] marginMs  how much longer than its value says a lock counts as held
  ARGV[12] reached   1 if a value that is reached is over, 0 if it has to be passed
  GRANTS  by itself
  REPLY   {0, token}                           granted; it was free
          {1, token, lateMs, words...}         succeeded: granted, though the lock was still there, expired lateMs ago; its
                                               value, and the claim of ours that has left it, if it was one
          {2, restMs, nowUs, endMs, words...}  held, until endMs by its value or 0; its value, and the claim that holds
          {3, words...}                        alien: what stands there is no lock of this kind
]]
local owner, leaseMs, unitMs, padding = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local before, after, graceMs, fenceMs = ARGV[5], ARGV[6], tonumber(ARGV[7]), ARGV[8]
local skewMs, latestMs, marginMs, reached = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])
local time = redis.call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local nowMs = math.floor(nowUs / 1000)

-- include timestamp
-- include timestamp-rest
-- include timestamp-write
local found = readValue()
local value, sinceMs, token, holder = readRecord()

local state = value and standing(found, value, tonumber(sinceMs), skewMs, latestMs)
if holder == owner and (state == 'own' or state == 'overwritten') then
  write(owner, token, sinceMs, value)
  return {0, tonumber(token)}
end

if found == nil then
  return {3, 'a key of another type'}
end
local units = found and unitMs > 0 and unitsOf(found)
if found and unitMs > 0 and not units then
  return {3, string.sub(found, 1, 80)}
end

-- Of our own clients one that may still work; not this claim itself, whose lock is gone.
local isKept = value and holder ~= owner and isLive(value, skewMs)
local isHeld, restMs = false, 0
if found then
  isHeld, restMs = heldFor(units)
end
if not isHeld and isKept then
  restMs = unitMs == 0 and redis.call('PTTL', KEYS[2]) or unitsOf(value) * unitMs - skewMs - nowMs
end
local endMs = units and units * unitMs or 0
if isHeld or isKept then
  return {2, restMs, nowUs, endMs, found or value, (isKept and state ~= 'claimed' or state == 'own') and holder or ''}
end

local granted = nowUs
local last = redis.call('GET', KEYS[3])
if last and last + 1 > granted then
  granted = last + 1
end
granted = string.format('%.0f', granted)
redis.call('SET', KEYS[3], granted, 'PX', fenceMs)
write(owner, granted, string.format('%.0f', nowMs))
if found then
  return {1, tonumber(granted), nowMs - endMs, found, state == 'own' and holder or ''}
end
return {0, tonumber(granted)}
