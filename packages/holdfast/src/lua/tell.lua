--[[
  lua/tell: send a message to a client's inbox, if the client is there to hear it.

  A hand-off to a process that is gone would block everybody for a whole lease. PUBLISH's own answer also counts
  whoever listens by a pattern, such as a person who watches with PSUBSCRIBE, so the subscribers of the very
  channel are counted.

  In a cluster the inbox ends in the hash tag of the keys and a colon, and the channel is a sharded one: only of these
  does a server know all subscribers. It knows none while the slot is on its way to it, or just after it took over, so
  whoever is passed over is told so, on the client's own channel: if it is alive it asks, and queues again. A server
  older than Redis 7 has no sharded channels and cannot know who is there; then everybody counts as there.

  Returns whether there is one.
]]
local function passOver(channel, number)
  redis.call('PUBLISH', (string.gsub(channel, '{[^}]*}:', '')), '~' .. number)
  return false
end

local function isUnknownHere(reply)
  return type(reply) == 'table' and reply.err and string.find(reply.err, 'nknown', 1, true)
end

local function isThere(channel, number)
  if string.find(channel, '}:', 1, true) then
    local count = redis.pcall('PUBSUB', 'SHARDNUMSUB', channel)
    return isUnknownHere(count) or count[2] ~= 0 or passOver(channel, number)
  end
  return redis.call('PUBSUB', 'NUMSUB', channel)[2] ~= 0
end

local function tell(channel, message)
  if string.find(channel, '}:', 1, true) then
    local heard = redis.pcall('SPUBLISH', channel, message)
    if isUnknownHere(heard) then
      redis.call('PUBLISH', channel, message)
      return true
    end
    if heard == 0 then
      return passOver(channel, string.match(message, '%d+'))
    end
    -- Whatever else was amiss with it is so the second time too, and is raised.
    return type(heard) == 'number' or redis.call('SPUBLISH', channel, message) ~= 0
  end
  if not isThere(channel) then
    return false
  end
  redis.call('PUBLISH', channel, message)
  return true
end
