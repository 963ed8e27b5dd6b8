--[[
  interop/timestamp/acquire: take the lock if it is free, or if the time in its value has passed.

  One step with the server's clock, so that only one of the clients that see an expired value wins, and the others write
  nothing. If the same owner asks again, the reply is the same and the lease is renewed.

  Among Holdfast clients, the record decides. The claim that it names may still be active even if a client of the other
  system has deleted the lock by mistake or has overwritten it.

  KEYS[1] lock       string, as the clients of the other system read it
  KEYS[2] record     string, the Holdfast claim that has written the lock
  KEYS[3] fence      string, last token issued to Holdfast clients
  ARGV[1] owner      id of this claim
  ARGV[2] leaseMs    length of the lease on the server
  ARGV[3] unitMs     unit of the value: 1000 or 1; 0 if the value is not a time
  ARGV[4] padding    units that are added to the end of the lease
  ARGV[5] before     text before the number
  ARGV[6] after      text after the number; the whole value if it is not a time
  ARGV[7] graceMs    how long the key outlives its value
  ARGV[8] fenceMs    how long the fence lives
  ARGV[9] skewMs     largest difference between clocks
  ARGV[10] latestMs  a value computed before a grant ends at most this long after it; -1 if late clients never write
  ARGV[11] marginMs  how long a lock counts as held after its value has ended
  ARGV[12] reached   1 if a lock ends when its time is reached, 0 if the time must have passed
  GRANTS  by itself
  REPLY   {0, token}                           granted; the lock was free
          {1, token, lateMs, words...}         succeeded: granted, although a lock that expired lateMs ago still
                                               existed; words are its value and the Holdfast claim that left it, empty
                                               if none
          {2, restMs, nowUs, endMs, words...}  held, until endMs by its value, 0 if it has none; words are the value and
                                               the Holdfast claim that holds, empty if none
          {3, words...}                        alien: the key contains no lock of this kind; the word describes it
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

-- Whether another Holdfast claim may still be active. This claim does not count, because its lock is gone.
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
