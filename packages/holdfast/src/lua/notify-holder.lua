--[[
  lua/notify-holder: send a message to a client without checking that it is subscribed.

  Uses the client's own channel, because a holder that never waited has no inbox in the slot of the keys. The client
  subscribes to its own channel even in a cluster.
]]
local function notifyHolder(inbox, client, message)
  redis.pcall('PUBLISH', (string.gsub(inbox, '{[^}]*}:$', '')) .. client, message)
end
