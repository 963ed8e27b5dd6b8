--[[
  recipes/fence/set: write a value, unless somebody has been there whose lock was granted later.

  One step: the token is compared, remembered and written with, so that whoever is late finds out here, however late it is.
  The mark lives at least as long as the value. Sent again it gives the same answer, as long as nobody later has written.

  KEYS[1] data    string: the value
  KEYS[2] mark    string: the highest token that was seen, a space, and the name of the lock that it is of
  ARGV[1] lock    name of the lock; the mark keeps it, since tokens of two locks cannot be compared
  ARGV[2] token   of the lease of whoever writes
  ARGV[3] value   what to write
  ARGV[4] keepMs  how long it is kept; 0 for ever
  ARGV[5] markMs  how long the mark is kept; 0 for ever
  REPLY   {1}                 written
          {2, seen}           stale: a higher token was seen, this one
          {3, seen, lock...}  foreign: the value belongs to another lock, this one
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
