--[[
  server/memory: what the server does when it runs out of memory. Changes nothing.

  This is a script because every store can run scripts. It is sent together with the first acquire, as a separate
  request.

  REPLY   0                         hidden: INFO is forbidden or renamed, or lacks the fields
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
