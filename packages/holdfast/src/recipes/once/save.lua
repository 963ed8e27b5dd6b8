--[[
  recipes/once/save: keep how far an attempt has come, for the attempt after it.

  A copy of an earlier request may come late: it does not lead back to where the attempt has been before.

  KEYS[1] record  hash, see recipes/once/begin
  ARGV[1] owner   id of the attempt
  ARGV[2] data    the recovery point
  ARGV[3] number  which one of this attempt it is, 1 or more, each higher than the one before
  REPLY   {1}  saved
          {2}  superseded: the call is not this attempt's any more
]]
local number = ARGV[3]
local record = redis.call('HMGET', KEYS[1], 'state', 'owner', 'saves')
if record[1] ~= 'running' or record[2] ~= ARGV[1] then
  return {2}
end
if number - (record[3] or 0) > 0 then
  redis.call('HSET', KEYS[1], 'saved', ARGV[2], 'saves', number)
end
return {1}
