--[[
  lua/extend-lease: begin the lease of a mutex anew, if the claim holds it by the very grant that it names.

  The same claim may have been granted twice, and only the later grant is good. A lease is never shortened, because
  the request may be a late copy that arrives after a longer extension. Uses KEYS[1] lock, KEYS[2] fence.
  Returns whether it was extended, and what the lease then has left: the fence, and what else tells of the lease,
  must outlive all of it.
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
    -- A full server accepts this first write, and then the others (docs/adr/135).
    redis.call('PEXPIRE', KEYS[2], restMs + 600000)
  end
  redis.call('SET', KEYS[2], token, 'PX', restMs + 600000)
  return true, restMs
end
