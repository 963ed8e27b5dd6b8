--[[
  lua/tell: send a message to a client's inbox, if the client is there to hear it.

  A hand-off to a process that is gone would block everybody for a whole lease. PUBLISH's own answer also counts
  whoever listens by a pattern, such as a person who watches with PSUBSCRIBE, so the subscribers of the very
  channel are counted.

  In a cluster the inbox ends in the hash tag of the keys and a colon, and the channel is a sharded one: only of these
  does the server of a slot know all subscribers. It knows none while the slot is on its way to it, or just after it took over, so
  whoever is passed over is told so, on the client's own channel: if it is alive it asks, and queues again. A server
  older than Redis 7 has no sharded channels and cannot know who is there; then everybody counts as there.

  A user may lack the permission to count or to publish, and some managed servers refuse either inside a script. The scripts that
  use this have written by then and must not stop half done, so a refusal counts as "not there": waiters poll. inbox/echo raises it.

  Returns whether there is one.
]]
local function passOver(channel, number)
  redis.pcall('PUBLISH', (string.gsub(channel, '{[^}]*}:', '')), '~' .. number)
  return false
end

-- Nothing, if this server has no sharded channels. To count everybody as there after a refusal would grant to the dead.
local function countShard(channel)
  local reply = redis.pcall('PUBSUB', 'SHARDNUMSUB', channel)
  if not reply.err then
    return reply[2]
  end
  return not string.find(reply.err, 'nknown', 1, true) and 0 or nil
end

local function isThere(channel, number)
  if string.find(channel, '}:', 1, true) then
    return countShard(channel) ~= 0 or passOver(channel, number)
  end
  local reply = redis.pcall('PUBSUB', 'NUMSUB', channel)
  return not reply.err and reply[2] ~= 0
end

local function tell(channel, message)
  -- Counted first: a message that nobody here hears still reaches subscribers of this server's replicas, who would
  -- believe it.
  if not isThere(channel, string.match(message, '%d+')) then
    return false
  end
  local reply
  if string.find(channel, '}:', 1, true) and countShard(channel) then
    reply = redis.pcall('SPUBLISH', channel, message)
  else
    reply = redis.pcall('PUBLISH', channel, message)
  end
  return type(reply) ~= 'table'
end
