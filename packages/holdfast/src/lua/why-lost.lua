--[[
  lua/why-lost: what a claim that no longer holds the mutex may assume.

  Every grant raises the fence. So as long as the fence equals the claim's own token, nothing has been granted since.
  Uses KEYS[2] fence. Returns 2 unclaimed, 3 claimed, 4 forgotten.
]]
local function whyLost(holder, token)
  local last = redis.call('GET', KEYS[2])
  if not last or last - token < 0 then
    return 4
  end
  if last - token == 0 and not holder then
    return 2
  end
  return 3
end
