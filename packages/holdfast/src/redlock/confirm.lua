--[[
  redlock/confirm: raise this server to the token of the grant, if the lock is held here as when it was asked for.

  Held by the same owner is not enough. The lease may have ended, somebody else may have had the lock with this very
  token, and a late copy of the acquire may have taken it again: then the server stands at another number than it
  reported, and the token belongs to somebody else. Sent again it gives the same answer, because it stands at the token.

  KEYS[1] lock      string, owner of the claim that holds on this server; expires with its lease
  KEYS[2] fence     string, number that this server stands at
  ARGV[1] owner     id of the attempt
  ARGV[2] reported  number that this server answered to it
  ARGV[3] token     the maximum that all of them answered, no less than reported
  ARGV[4] leaseMs   length of the lease, which begins anew
  REPLY   1         confirmed: it stands at the token for the owner
          2         refused: it may have been somebody else's since, or it stands above the token
]]
local owner, reported, token, leaseMs = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local last = redis.call('GET', KEYS[2])
if not last or redis.call('GET', KEYS[1]) ~= owner then
  return 2
end
if (last - reported ~= 0 and last - token ~= 0) or token - last < 0 then
  return 2
end
-- include begin-anew
redis.call('PSETEX', KEYS[2], beginAnew(leaseMs), token)
return 1
