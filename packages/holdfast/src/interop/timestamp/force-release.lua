--[[
  interop/timestamp/force-release: take the lock away from the holder that the caller has seen, and tell that holder if it
  is one of ours.

  The caller names the holder as `inspect` shows it: one of ours by its owner or token, another by the value of the lock.
  Nothing happens if it has changed meanwhile; nor if it is one of ours and the value of another client stands there, which
  may be anybody's lock: whoever means that one as well names it first. The fence moves, so that the old holder's own
  release learns that it was too late.

  KEYS[1] lock     string, as the clients of the other system read it
  KEYS[2] record   string, which of our claims has written it
  KEYS[3] fence    string, last token issued to our clients
  ARGV[1] owner    whose hold to end; empty to go by the token alone
  ARGV[2] token    which grant to end; empty to go by the owner alone
  ARGV[3] unitMs   what the value counts: 1000, 1; 0 if it is no time
  ARGV[4] marginMs  how much longer than its value says a lock counts as held
  ARGV[5] reached  1 if a value that is reached is over, 0 if it has to be passed
  ARGV[6] inbox    what a client id is appended to for the channel that the client listens on
  ARGV[7] channel  where our own clients listen who wait; empty to tell nobody
  ARGV[8] note     what the holder is told beside; empty for nothing
  REPLY   0        unchanged: free, or held by somebody else
          1        released
]]
local owner, token, unitMs, marginMs, reached = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local inbox, channel, note = ARGV[6], ARGV[7], ARGV[8]
local time = redis.call('TIME')
local nowMs = math.floor((time[1] * 1000000 + time[2]) / 1000)

-- include timestamp
-- include timestamp-rest
-- include tell-holder
local found = readValue()
local value, sinceMs, granted, holder = readRecord()
-- What is of another type, or no time, may be somebody's as well.
local isForeign = found ~= value and found ~= false
if isForeign and found then
  local units = unitMs > 0 and unitsOf(found)
  isForeign = units == nil or heldFor(units)
end
local isNamed = value and (owner == '' or owner == holder) and (token == '' or token == granted)
if isNamed and not isForeign then
  if found == value then
    redis.call('DEL', KEYS[1])
  end
  redis.call('DEL', KEYS[2])
  redis.call('SET', KEYS[3], string.format('%.0f', granted + 1), 'PX', 600000)
  local client, number = string.match(holder, '^([^/]+)/(%d+)/%d+/%d+')
  if client then
    tellHolder(inbox, client, '-' .. number .. note)
  end
elseif found and found ~= value and token == '' and owner == found then
  redis.call('DEL', KEYS[1])
else
  return 0
end
if channel ~= '' then
  redis.pcall('PUBLISH', channel, 'released')
end
return 1
