--[[
  interop/timestamp/release: give the lock back, if it is still ours, and tell our own clients who wait.

  One step, so that nobody else's lock is deleted. A value that a client has written who came too late is left where it is,
  unless the caller wants it gone: that client does not know that it is there, but its value may be anybody's by now as far
  as others can tell.

  KEYS[1] lock      string, as the clients of the other system read it
  KEYS[2] record    string, which of our claims has written it
  KEYS[3] fence     string, last token issued to our clients
  ARGV[1] owner     id of the claim that was granted
  ARGV[2] token     of its grant; empty if the claim may have been granted without knowing it
  ARGV[3] unitMs    what the value counts: 1000, 1; 0 if it is no time
  ARGV[4] skewMs    how far the clocks may differ
  ARGV[5] latestMs  how long after our grant a value ends that was computed before it, at the latest; -1 if there are none
  ARGV[6] clear     1 to delete the value of a client that came too late
  ARGV[7] channel   where our own clients listen who wait; empty to tell nobody
  REPLY   1              released
          2              unclaimed: it had ended, and none of ours was granted since, and nobody has it now
          3              claimed: it had ended, and somebody else has it or had it
          4              forgotten: the server does not know that it ever was
          5              deleted: it had not ended, and the lock is gone
          {6, words...}  overwritten: released, but the value of a client that had come too late stood there
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
