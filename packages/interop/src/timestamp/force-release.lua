--[[
  interop/timestamp/force-release: release the lock of a given holder, and notify that holder if it uses Holdfast.

  The caller identifies the holder as `inspect` shows it: a Holdfast holder by its owner or token, a foreign holder by
  the value of the lock. Nothing happens if the holder has changed, or if the caller names a Holdfast holder and the key
  has a foreign value, because that may be another client's live lock: release that value first. The fence is raised, so
  that the old holder's own release reports that it came too late.

  KEYS[1] lock     string, as the clients of the other system read it
  KEYS[2] record   string, the Holdfast claim that has written the lock
  KEYS[3] fence    string, last token issued to Holdfast clients
  ARGV[1] owner    owner or foreign value whose hold to end; empty to identify the holder by its token only
  ARGV[2] token    token of the grant to end; empty to identify the holder by its owner only
  ARGV[3] unitMs   unit of the value: 1000 or 1; 0 if the value is not a time
  ARGV[4] marginMs  how long a lock counts as held after its value has ended
  ARGV[5] reached  1 if a lock ends when its time is reached, 0 if the time must have passed
  ARGV[6] inbox    prefix of the inbox channel of a client, to which its client id is appended
  ARGV[7] channel  channel of Holdfast waiters; empty to notify none
  ARGV[8] note     text for the holder, appended to the message; empty for none
  REPLY   0        unchanged: the lock is free, or another client holds it
          1        released
]]
local owner, token, unitMs, marginMs, reached = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local inbox, channel, note = ARGV[6], ARGV[7], ARGV[8]
local time = redis.call('TIME')
local nowMs = math.floor((time[1] * 1000000 + time[2]) / 1000)

-- include timestamp
-- include timestamp-rest
-- include notify-holder
local found = readValue()
local value, sinceMs, granted, holder = readRecord()
-- A key of a different type, or a value that is not a time, may also belong to another client.
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
    notifyHolder(inbox, client, '-' .. number .. note)
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
