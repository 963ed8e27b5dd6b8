--[[
  lua/holds: whether a claim holds the mutex under exactly the given grant.

  Compares the token too, because the same claim may have been granted twice, and only the later grant is valid.
  Uses KEYS[1] lock, KEYS[2] fence.
]]
local function holds(owner, token)
  if redis.call('GET', KEYS[1]) ~= owner then
    return false
  end
  local last = redis.call('GET', KEYS[2])
  return not last or last - token == 0
end
