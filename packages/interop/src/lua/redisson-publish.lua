--[[
  lua/redisson-publish: wake the waiters with the publish command that matches how their client subscribes.

  Runs before the first write, so that a missing permission to publish raises an error before anything is changed. A
  server without sharded channels has no subscribers on them, so its missing SPUBLISH is ignored.
]]
local function publish(how, channel, message)
  if how ~= 'sharded' then
    redis.call('PUBLISH', channel, message)
  end
  if how ~= 'plain' then
    local reply = redis.pcall('SPUBLISH', channel, message)
    if type(reply) == 'table' and reply.err and not string.find(reply.err, 'nknown', 1, true) then
      redis.call('SPUBLISH', channel, message)
    end
  end
end
