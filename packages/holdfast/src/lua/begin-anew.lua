--[[
  lua/begin-anew: renew the lease of a held lock, on one server of a quorum.

  Never shortens a lease, because the request may be a late copy that arrives after a longer extension. Uses KEYS[1]
  lock. Returns how long the fence must live, in ms: 10 minutes longer than the lease.
]]
local function beginAnew(leaseMs)
  local restMs = redis.call('PTTL', KEYS[1])
  if restMs - leaseMs < 0 then
    redis.call('PEXPIRE', KEYS[1], leaseMs)
    restMs = leaseMs
  end
  return restMs + 600000
end
