--[[
  lua/tell: send a message to a client's inbox, if the client is there to hear it.

  A hand-off to a process that is gone would block everybody for a whole lease. PUBLISH's own answer also counts
  whoever listens by a pattern, such as a person who watches with PSUBSCRIBE, so the subscribers of the very
  channel are counted.

  Returns whether there is one.
]]
local function isThere(channel)
  return redis.call('PUBSUB', 'NUMSUB', channel)[2] ~= 0
end

local function tell(channel, message)
  if not isThere(channel) then
    return false
  end
  redis.call('PUBLISH', channel, message)
  return true
end
