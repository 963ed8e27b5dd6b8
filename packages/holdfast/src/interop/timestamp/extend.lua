--[[
  interop/timestamp/extend: begin the lease anew, if it is still ours; also where a client that came too late to take it has
  overwritten the value, which is put right then.

  One step, so that nothing is written over a value that was not looked at.

  KEYS[1] lock       string, as the clients of the other system read it
  KEYS[2] record     string, which of our claims has written it
  KEYS[3] fence      string, last token issued to our clients
  ARGV[1] owner      id of the claim that was granted
  ARGV[2] token      of its grant
  ARGV[3] leaseMs    new length of the lease on the server
  ARGV[4] unitMs     what the value counts: 1000, 1; 0 if it is no time
  ARGV[5] padding    so many units are added
  ARGV[6] before     what stands before the number
  ARGV[7] after      what stands after it; the whole value if it is no time
  ARGV[8] graceMs    how much longer the key lives than its value says
  ARGV[9] skewMs     how far the clocks may differ
  ARGV[10] latestMs  how long after our grant a value ends that was computed before it, at the latest; -1 if there are none
  ARGV[11] fenceMs   how long the fence outlives this
  RENEWS
  REPLY   1              extended
          3              claimed: it had ended, and somebody else has it or had it
          4              forgotten: the server does not know that it ever was, or what became of it
          5              deleted: it had not ended, and the lock is gone
          {6, words...}  overwritten: extended, over the value of a client that had come too late
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
-- A full server accepts this first write, and then the others (docs/adr/135).
redis.call('PEXPIRE', KEYS[2], leaseMs)
write(owner, token, sinceMs, value)
redis.call('SET', KEYS[3], token, 'PX', math.max(redis.call('PTTL', KEYS[3]), tonumber(ARGV[11])))
if state == 'overwritten' then
  return {6, found}
end
return 1
