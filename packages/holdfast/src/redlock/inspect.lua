--[[
  redlock/inspect: the holder of the lock on this server. Changes nothing.

  KEYS[1] lock   string, owner id of the holder on this server; expires with its lease
  KEYS[2] fence  string, current number of this server
  REPLY   {0, token, leftMs}            free; token is the last number, 0 if there is none; leftMs is -2
          {1, token, leftMs, owner...}  held by the single owner listed; leftMs is -1 if the key has no expiry
]]
local holder = redis.call('GET', KEYS[1])
local token = tonumber(redis.call('GET', KEYS[2]) or 0)
return {holder and 1 or 0, token, redis.call('PTTL', KEYS[1]), holder or nil}
