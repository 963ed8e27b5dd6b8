--[[
  lua/redisson-count: read the count of a semaphore or latch, and refuse a key that belongs to something else.

  The server itself refuses a key of a different type. A client that adds a prefix to its keys adds it neither to
  channels nor to the names that Redisson derives from the key. The two libraries would then use different names, so
  this script refuses the key.

  Needs `name`. Uses KEYS[1], a string.
]]
if not rawequal(name, KEYS[1]) then
  return 4
end
local text = redis.call('GET', KEYS[1])
if text and not string.match(text, '^%-?%d+$') then
  return 3
end
local count = tonumber(text or 0)
