--[[
  lua/extend-lease: begin the lease of a mutex anew, if the claim holds it by the very grant that it names.

  The same claim may have been granted twice, and only the later grant is good. A lease is never shortened, because
  the request may be a late copy that arrives after a longer extension. Uses KEYS[1] lock, KEYS[2] fence.
  Returns whether it was extended.
]]
local function extendLease(owner, token, leaseMs)
  if redis.call('GET', KEYS[1]) ~= owner then
    return false
  end
  local last = redis.call('GET', KEYS[2])
  if last and last - token ~= 0 then
    return false
  end
  if redis.call('PTTL', KEYS[1]) - leaseMs < 0 then
    redis.call('PEXPIRE', KEYS[1], leaseMs)
  end
  redis.call('SET', KEYS[2], token, 'PX', leaseMs + 600000)
  return true
end
