--[[
  interop/timestamp/extend: renew the lease if the claim still holds the lock.

  If a client that came too late has overwritten the value, the claim still holds the lock, and the value is restored.
  Runs in one step, so that it never overwrites a value that it has not checked.

  KEYS[1] lock       string, as the clients of the other system read it
  KEYS[2] record     string, the Holdfast claim that has written the lock
  KEYS[3] fence      string, last token issued to Holdfast clients
  ARGV[1] owner      id of the claim that was granted
  ARGV[2] token      token of its grant
  ARGV[3] leaseMs    new length of the lease on the server
  ARGV[4] unitMs     unit of the value: 1000 or 1; 0 if the value is not a time
  ARGV[5] padding    units that are added to the end of the lease
  ARGV[6] before     text before the number
  ARGV[7] after      text after the number; the whole value if it is not a time
  ARGV[8] graceMs    how long the key outlives its value
  ARGV[9] skewMs     largest difference between clocks
  ARGV[10] latestMs  a value computed before a grant ends at most this long after it; -1 if late clients never write
  ARGV[11] fenceMs   how long the fence lives from now, at least
  RENEWS
  REPLY   1              extended
          3              claimed: the lease had ended, and another client holds the lock or held it since
          4              forgotten: the server has no record of the grant
          5              deleted: the lease had not ended, but the lock is gone
          {6, words...}  overwritten: extended, and the value of a client that came too late was replaced
]]
local owner, token, leaseMs, unitMs, padding = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local before, after, graceMs, skewMs, latestMs = ARGV[6], ARGV[7], tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10])
local time = redis.call('TIME')
local nowMs = math.floor((time[1] * 1000000 + time[2]) / 1000)

-- include timestamp
-- include timestamp-write
local found = readValue()
local value, sinceMs, granted, holder = readRecord()
if holder ~= owner or granted ~= token then
  return (found == false and not value) and 4 or 3
end
local state = standing(found, value, tonumber(sinceMs), skewMs, latestMs)
if state == 'deleted' then
  return 5
end
if state == 'claimed' then
  return 3
end
-- A server that is out of memory accepts this write, and then all others of the script (docs/adr/135).
redis.call('PEXPIRE', KEYS[2], leaseMs)
write(owner, token, sinceMs, value)
redis.call('SET', KEYS[3], token, 'PX', math.max(redis.call('PTTL', KEYS[3]), tonumber(ARGV[11])))
if state == 'overwritten' then
  return {6, found}
end
return 1
