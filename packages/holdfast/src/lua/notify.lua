--[[
  lua/notify: send a message to the inbox of a client, if the client is subscribed to it.

  A grant to a process that is gone would block the lock for a whole lease, so the subscribers are counted before the
  message is sent. The reply of PUBLISH is not enough, because it also counts pattern subscribers, such as an operator
  with PSUBSCRIBE. So the script counts the subscribers of the exact channel.

  In a cluster, the inbox prefix ends in the hash tag of the keys and a colon. The channel is sharded, because the
  server of a slot knows all subscribers of a channel only if the channel is sharded. While the slot migrates to a
  server, or just after a server took over, that server knows no subscribers. So a client that is skipped is notified
  on its own channel. If it is alive, it queues again. A server older than Redis 7 has no sharded channels and cannot
  count, so every client is treated as subscribed.

  The Redis user may lack the permission to count or to publish, and some servers refuse both inside a script. The
  calling scripts have already written by then and must not stop halfway, so a refusal counts as "not subscribed", and
  the waiters poll. Only inbox/echo reports such a refusal as an error.

  Returns whether the message was sent to a subscriber.
]]
local function sendHint(channel, number)
  redis.pcall('PUBLISH', (string.gsub(channel, '{[^}]*}:', '')), '~' .. number)
  return false
end

-- Returns the number of subscribers, or nil if this server has no sharded channels. Returns 0 after a refusal, because
-- granting to a dead client would be worse than skipping a live one.
local function countShard(channel)
  local reply = redis.pcall('PUBSUB', 'SHARDNUMSUB', channel)
  if not reply.err then
    return reply[2]
  end
  return not string.find(reply.err, 'nknown', 1, true) and 0 or nil
end

local function isThere(channel, number)
  if string.find(channel, '}:', 1, true) then
    return countShard(channel) ~= 0 or sendHint(channel, number)
  end
  local reply = redis.pcall('PUBSUB', 'NUMSUB', channel)
  return not reply.err and reply[2] ~= 0
end

local function notify(channel, message)
  -- Counts first, because a message without a subscriber here still reaches subscribers on replicas, which would accept
  -- the grant.
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
