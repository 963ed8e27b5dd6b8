--[[
  interop/timestamp/release: release the lock if the claim still holds it, and notify Holdfast waiters.

  Runs in one step, so that it never deletes another client's lock. The value of a client that came too late and has
  overwritten the lock stays, unless `clear` is set. That client does not know that its value is in place, but by then
  the value may belong to another client.

  KEYS[1] lock      string, as the clients of the other system read it
  KEYS[2] record    string, the Holdfast claim that has written the lock
  KEYS[3] fence     string, last token issued to Holdfast clients
  ARGV[1] owner     id of the claim that was granted
  ARGV[2] token     token of its grant; empty if the client does not know whether the claim was granted
  ARGV[3] unitMs    unit of the value: 1000 or 1; 0 if the value is not a time
  ARGV[4] skewMs    largest difference between clocks
  ARGV[5] latestMs  a value computed before a grant ends at most this long after it; -1 if late clients never write
  ARGV[6] clear     1 to delete the value of a client that came too late
  ARGV[7] channel   channel of Holdfast waiters; empty to notify none
  REPLY   1              released
          2              unclaimed: the lease had ended, no Holdfast claim was granted since, and the lock is free now
          3              claimed: the lease had ended, and another client holds the lock or held it since
          4              forgotten: the server has no record of the grant
          5              deleted: the lease had not ended, but the lock is gone
          {6, words...}  overwritten: released, but the key had the value of a client that came too late
]]
local owner, token, unitMs, skewMs = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local latestMs, clear, channel = tonumber(ARGV[5]), ARGV[6], ARGV[7]
local time = redis.call('TIME')
local nowMs = math.floor((time[1] * 1000000 + time[2]) / 1000)

-- include timestamp
local found = readValue()
local value, sinceMs, granted, holder = readRecord()
if holder ~= owner or (token ~= '' and granted ~= token) then
  local last = redis.call('GET', KEYS[3])
  if token == '' or not last or last - token < 0 then
    return 4
  end
  return last == token and found == false and 2 or 3
end

local state = standing(found, value, tonumber(sinceMs), skewMs, latestMs)
redis.call('DEL', KEYS[2])
if state == 'own' or (state == 'overwritten' and clear == '1') then
  redis.call('DEL', KEYS[1])
end
if channel ~= '' then
  redis.pcall('PUBLISH', channel, 'released')
end
if state == 'own' then
  return 1
end
if state == 'overwritten' then
  return {6, found}
end
return state == 'deleted' and 5 or 3
