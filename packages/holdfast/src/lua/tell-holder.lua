--[[
  lua/tell-holder: send a message to a client whether or not it hears it.

  By the client's own channel, which it listens on in a cluster as well: whoever holds need not have waited, and has
  then no inbox in the slot of the keys.
]]
local function tellHolder(inbox, client, message)
  redis.pcall('PUBLISH', (string.gsub(inbox, '{[^}]*}:$', '')) .. client, message)
end
