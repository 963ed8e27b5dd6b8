--[[
  lua/redisson-count: read the count of a semaphore or latch, and refuse a key that is of something else.

  A key of another type is refused by the server itself. A client that puts something before its keys does not do so with
  channels and the names that Redisson makes of the key, so both sides would work beside each other.

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
