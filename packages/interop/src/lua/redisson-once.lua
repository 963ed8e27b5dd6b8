--[[
  lua/redisson-once: reply to a repeated request with its first reply.

  The wire format has no request ids, so a request whose reply was lost looks like a new one: permits would be
  released twice, or an event counted twice. An additional key, which no other library reads, stores the reply.

  Needs `keepMs`. Uses KEYS[2] request, a string.
]]
local answered = redis.call('GET', KEYS[2])
if answered then
  return {0, tonumber(answered)}
end
local function answer(value)
  redis.call('SET', KEYS[2], string.format('%.0f', value), 'PX', keepMs)
  return {0, value}
end
