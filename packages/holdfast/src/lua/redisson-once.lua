--[[
  lua/redisson-once: give a request that was carried out before the answer that it had.

  The wire format knows no requests, so one whose answer was lost could not be told from a second one: permits would be
  given twice, an event counted twice. A key of our own beside it, which no other library looks at, remembers the answer.

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
