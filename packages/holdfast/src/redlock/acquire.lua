--[[
  redlock/acquire: take the lock on this server, one of several that know nothing of each other.

  The number that it answers is this server's own: the last one + 1, so that servers that have stood at one number
  answer one number again, and a client needs no second round trip. Only a server that has none begins at its clock:
  its last one is forgotten, or was long ago, and lies behind that. Sent again by the owner while it holds it gives the
  same answer. A copy that arrives after the end of the lease takes the lock once more, under the next number; that is
  how redlock/confirm knows it.

  KEYS[1] lock     string, owner of the claim that holds on this server; expires with its lease
  KEYS[2] fence    string, number that this server stands at
  ARGV[1] owner    id of this attempt
  ARGV[2] leaseMs  length of the lease
  GRANTS  by itself
  REPLY   {0, token}   granted by this server; its own number, of which the client takes the maximum
          {1, restMs}  held by somebody else, whose lease on this server ends in restMs, or never if -1
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
