--[[
  recipes/counter/read: the current count. Changes nothing.

  KEYS[1] count  string, see recipes/counter/change
  REPLY   left   what is left; 0 if nothing was ever added
]]
return tonumber(redis.call('GET', KEYS[1]) or '0')
