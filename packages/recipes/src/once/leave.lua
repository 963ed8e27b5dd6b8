--[[
  recipes/once/leave: give up an attempt whose work has not begun.

  KEYS[1] record   hash, see recipes/once/begin
  ARGV[1] owner    id of the attempt
  ARGV[2] channel  channel that waiting callers subscribe to
  REPLY   {1}  left
          {2}  absent: the call does not belong to this attempt
]]
local record = redis.call('HMGET', KEYS[1], 'state', 'owner', 'attempt', 'saved')
if record[1] ~= 'running' or record[2] ~= ARGV[1] then
  return {2}
end
if record[3] == '1' and not record[4] then
  redis.call('DEL', KEYS[1])
else
  -- A server at its memory limit accepts this command, and then all later writes of this script (docs/adr/135).
  redis.call('HDEL', KEYS[1], '')
  redis.call('HSET', KEYS[1], 'state', 'released', 'attempt', record[3] - 1)
end
redis.pcall('PUBLISH', ARGV[2], 'released')
return {1}
