--[[
  lua/extend-lease: renew the lease of a mutex, if the claim holds it under exactly the given grant.

  The same claim may have been granted twice, and only the later grant is valid. Never shortens a lease, because the
  request may be a late copy that arrives after a longer extension. Also extends the expiry of the fence; the caller
  must do so for all other records of the lease. Uses KEYS[1] lock, KEYS[2] fence. Returns whether the lease was
  extended, and how many ms of it are left.
]]
local function extendLease(owner, token, leaseMs)
  if redis.call('GET', KEYS[1]) ~= owner then
    return false
  end
  local last = redis.call('GET', KEYS[2])
  if last and last - token ~= 0 then
    return false
  end
  local restMs = redis.call('PTTL', KEYS[1])
  if restMs - leaseMs < 0 then
    redis.call('PEXPIRE', KEYS[1], leaseMs)
    restMs = leaseMs
  else
    -- Do this write first. The server accepts it even when out of memory, and then accepts all later writes of this
    -- script (docs/adr/135).
    redis.call('PEXPIRE', KEYS[2], restMs + 600000)
  end
  redis.call('SET', KEYS[2], token, 'PX', restMs + 600000)
  return true, restMs
end
