--[[
  inbox/echo: send a message to a client's inbox, so that the client learns whether messages reach it.

  Counts the channel's subscribers, as a hand-off does. Delivery alone is not enough: a demoted master still delivers
  what its new master publishes, but the new master does not count that subscriber, so a hand-off grants the client
  nothing.

  KEYS[1] inbox    name of the channel; nothing is stored there. In a cluster, its hash tag selects the server that runs
                   the script
  ARGV[1] channel  name of the channel
  ARGV[2] number   number of the echo; no claim of the client has this number
  ARGV[3] counted  1 if hand-offs count the subscribers of this channel; 0 if it is a client's own channel in a cluster,
                   because its subscriber may be connected to any server
  REPLY   1        sent
          0        uncounted: this server has no subscriber for the channel
]]
local channel, message = ARGV[1], '=' .. ARGV[2]

-- include notify
-- Makes a cluster server check that it owns the slot, as it does for each key that a script uses.
redis.call('EXISTS', KEYS[1])
if ARGV[3] == '0' then
  redis.call('PUBLISH', channel, message)
  return 1
end
if notify(channel, message) then
  return 1
end
-- There is no subscriber, or the server refuses to count or to publish. Nothing has been written, so it is safe for
-- these calls to raise the server's error.
if string.find(channel, '}:', 1, true) and countShard(channel) then
  redis.call('PUBSUB', 'SHARDNUMSUB', channel)
  redis.call('SPUBLISH', channel, message)
else
  redis.call('PUBSUB', 'NUMSUB', channel)
  redis.call('PUBLISH', channel, message)
end
return 0
