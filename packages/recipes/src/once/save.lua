--[[
  recipes/once/save: save an attempt's data for the next attempt.

  A late copy of an earlier request does not replace newer data.

  KEYS[1] record  hash, see recipes/once/begin
  ARGV[1] owner   id of the attempt
  ARGV[2] data    the data to save
  ARGV[3] number  number of this save within the attempt: 1, 2, and so on
  REPLY   {1}  saved
          {2}  superseded: the call no longer belongs to this attempt
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
