--[[
  admin/here: what a key is called on the server, and what time it is there. Changes nothing.

  A client library may put something before each key, and says so to nobody but the server: only there can be seen
  what the keys that SCAN will list begin with.

  KEYS[1] key  any key; it need not exist
  REPLY   {0, nowMs, names...}  seen: the server's time in ms since 1970; names has the key as it arrived
]]
local time = redis.call('TIME')
return {0, time[1] * 1000 + math.floor(time[2] / 1000), string.format('%s', KEYS[1])}
