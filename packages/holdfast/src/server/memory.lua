--[[
  server/memory: what the server does when its memory is full. Changes nothing.

  It is a script, since a script is what every store can carry out. No acquire asks it by itself: it is sent beside
  the first one.

  REPLY   0                         hidden: INFO is forbidden here, renamed, or does not say
          {1, maxmemory, words...}  shown: the limit in bytes, 0 for none, and the policy, one word
]]
local info = redis.pcall('INFO', 'memory')
if type(info) ~= 'string' then
  return 0
end
local maxmemory = string.match(info, 'maxmemory:(%d+)')
local policy = string.match(info, 'maxmemory_policy:([%w-]+)')
if not maxmemory or not policy then
  return 0
end
return {1, maxmemory, policy}
