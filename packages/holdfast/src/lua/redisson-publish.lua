--[[
  lua/redisson-publish: wake whoever waits, with the command that its client listens for.

  Called before the first write: a user who may not publish is told so while nothing is undone yet. A server without
  sharded channels has no listeners on them, so that it lacks the command is of no account where both are used.
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
