--[[
  lua/notify-holder: send a message to a client without checking that it is subscribed.

  Uses the client's own channel, to which the client subscribes even in a cluster. A holder that never waited has no
  inbox in the slot of the keys.
]]
local function notifyHolder(inbox, client, message)
  redis.pcall('PUBLISH', (string.gsub(inbox, '{[^}]*}:$', '')) .. client, message)
end
