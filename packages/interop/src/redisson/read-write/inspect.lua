--[[
  interop/redisson/read-write/inspect: return the readers or the writer.

  KEYS[1] lock  hash, mode -> read or write, owner -> hold count; expires with the longest lease
  ARGV[1] name  the first key, without any prefix that a client adds
  REPLY   {0, restMs, owners...}  free
          {1, restMs, owners...}  reading: the readers
          {2, restMs, owners...}  writing: the writer, and its own read hold if it has one
          3                       mistyped: the key belongs to an object of a different type
          4                       prefixed: the client added a prefix to the key
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
