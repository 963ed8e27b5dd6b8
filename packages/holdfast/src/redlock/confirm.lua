--[[
  redlock/confirm: raise this server's number to the token if the server still holds the lock for this grant.

  Comparing the owner is not enough. The lease may have ended, another claim may have held the lock with the same
  token, and a late copy of the acquire may have taken the lock again. In that case, the server's number differs from
  `reported`, and the token belongs to another claim. A repeated request gets the same reply, because the number already
  equals the token.

  KEYS[1] lock      string, owner id of the holder on this server; expires with its lease
  KEYS[2] fence     string, current number of this server
  ARGV[1] owner     id of the attempt
  ARGV[2] reported  number in this server's reply to the acquire
  ARGV[3] token     highest number among the servers that granted; at least `reported`
  ARGV[4] leaseMs   length of the lease, counted from now
  REPLY   1         confirmed: this owner holds the lock here, and the token is this server's number
          2         refused: another claim may have held the lock since the acquire, or the number is above the token
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
