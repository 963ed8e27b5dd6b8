--[[
  recipes/fence/set: write a value, unless a later holder of the lock has already written it.

  One script compares the token, remembers it and writes the value, so a late holder is refused however late it is. The
  mark lives at least as long as the value. A retry gets the same reply unless a later holder has written since.

  KEYS[1] data    string: the value
  KEYS[2] mark    string: the highest token that was seen, a space, and the name of its lock
  ARGV[1] lock    name of the lock; the mark stores it, because tokens of different locks cannot be compared
  ARGV[2] token   token of the writer's lease
  ARGV[3] value   value to write
  ARGV[4] keepMs  how long the value is kept; 0 forever
  ARGV[5] markMs  how long the mark is kept; 0 forever
  REPLY   {1}                 written
          {2, seen}           stale: this higher token was seen
          {3, seen, lock...}  foreign: the value belongs to this other lock, whose highest token is seen
]]
local lock, token, value, keepMs, markMs = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local mark = redis.call('GET', KEYS[2])
if mark then
  local at = string.find(mark, ' ', 1, true)
  local seen, owner = tonumber(string.sub(mark, 1, at - 1)), string.sub(mark, at + 1)
  if owner ~= lock then
    return {3, seen, owner}
  end
  if seen > tonumber(token) then
    return {2, seen}
  end
end
if markMs == '0' then
  redis.call('SET', KEYS[2], token .. ' ' .. lock)
else
  redis.call('PSETEX', KEYS[2], markMs, token .. ' ' .. lock)
end
if keepMs == '0' then
  redis.call('SET', KEYS[1], value)
else
  redis.call('PSETEX', KEYS[1], keepMs, value)
end
return {1}
