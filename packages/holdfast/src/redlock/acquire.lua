--[[
  redlock/acquire: take the lock on this server, one of several independent servers.

  Each server replies with a number of its own: its last number plus 1. So servers with equal numbers reply with equal
  numbers again, and the client needs no second round trip. A server without a number, for example because its number
  has expired, starts from its clock. A repeated request from the current holder gets the same reply. A copy that
  arrives after the lease has ended takes the lock again and gets the next number, by which redlock/confirm recognizes
  the copy.

  KEYS[1] lock     string, owner id of the holder on this server; expires with its lease
  KEYS[2] fence    string, current number of this server
  ARGV[1] owner    id of this attempt
  ARGV[2] leaseMs  length of the lease
  GRANTS  by itself
  REPLY   {0, token}   granted by this server; token is its number; the client uses the highest number in a majority
          {1, restMs}  held by another claim, whose lease on this server ends in restMs, or never if -1
]]
local owner, leaseMs = ARGV[1], ARGV[2]

local holder = redis.call('GET', KEYS[1])
if holder and holder ~= owner then
  return {1, redis.call('PTTL', KEYS[1])}
end

local token = redis.call('GET', KEYS[2])
if token then
  token = token + (holder and 0 or 1)
else
  local time = redis.call('TIME')
  token = time[1] * 1000000 + time[2]
end
-- include begin-anew
if not holder then
  redis.call('PSETEX', KEYS[1], leaseMs, owner)
end
redis.call('PSETEX', KEYS[2], beginAnew(leaseMs), token)
return {0, token}
