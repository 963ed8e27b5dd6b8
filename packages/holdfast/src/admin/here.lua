--[[
  admin/here: return a key as the server receives it, and the server's time. Read-only.

  Some client libraries add a prefix to each key, and only the server sees the full key. SCAN returns full keys, so
  Holdfast must know that prefix.

  KEYS[1] key  any key; it need not exist
  REPLY   {0, nowMs, names...}  seen: the server's time in ms since 1970; names contains the key as received
]]
local time = redis.call('TIME')
return {0, time[1] * 1000 + math.floor(time[2] / 1000), string.format('%s', KEYS[1])}
