--[[
  recipes/once/leave: give up an attempt that nobody has begun to work on.

  KEYS[1] record   hash, see recipes/once/begin
  ARGV[1] owner    id of the attempt
  ARGV[2] channel  where those listen who wait for the end
  REPLY   {1}  left
          {2}  absent: the call is not this attempt's
]]
local record = redis.call('HMGET', KEYS[1], 'state', 'owner', 'attempt', 'saved')
if record[1] ~= 'running' or record[2] ~= ARGV[1] then
  return {2}
end
if record[3] == '1' and not record[4] then
  redis.call('DEL', KEYS[1])
else
  -- A full server accepts this first write, and then the others (docs/adr/135).
  redis.call('HDEL', KEYS[1], '')
  redis.call('HSET', KEYS[1], 'state', 'released', 'attempt', record[3] - 1)
end
redis.pcall('PUBLISH', ARGV[2], 'released')
return {1}
