--[[
  interop/redisson/read-write/inspect: who reads, or who writes.

  KEYS[1] lock  hash, mode -> read or write, owner -> hold count; expires with the longest lease
  ARGV[1] name  the first key as it must arrive here
  REPLY   {0, restMs, owners...}  free
          {1, restMs, owners...}  reading: the readers
          {2, restMs, owners...}  writing: the writer, and whoever reads under its own write lock
          3                       mistyped: the key is of something else
          4                       prefixed: a client has put something before the key
]]
local name = ARGV[1]

-- include redisson-mode
if not rawequal(name, KEYS[1]) then
  return 4
end
local mode = modeOf()
if mode == nil then
  return 3
end
local code = mode == 'write' and 2 or mode and 1 or 0
local reply = {code, redis.call('PTTL', KEYS[1])}
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if field ~= 'mode' then
    reply[#reply + 1] = field
  end
end
return reply
