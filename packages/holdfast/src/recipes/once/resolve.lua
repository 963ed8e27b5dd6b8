--[[
  recipes/once/resolve: end a call that is blocked, by whoever has found out how it ended.

  Sent again it gives the same answer, as long as nobody has begun the call anew.

  KEYS[1] record   hash, see recipes/once/begin
  ARGV[1] state    done, with that value; or released, so that the next caller runs it again
  ARGV[2] value    what later callers get
  ARGV[3] keepMs   how long the record lives from now
  ARGV[4] channel  where those listen who wait for the end
  REPLY   {1}            resolved
          {2, state...}  unblocked: it is not blocked, but in that state, if there is a record
]]
local ending, value, keepMs, channel = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local record = redis.call('HMGET', KEYS[1], 'state', 'value', 'resolved')
if record[3] == ending and record[1] == ending and (record[2] or '') == value then
  return {1}
end
if record[1] ~= 'blocked' then
  return {2, record[1] or ''}
end
redis.call('HSET', KEYS[1], 'state', ending, 'value', value, 'resolved', ending)
redis.call('PEXPIRE', KEYS[1], keepMs)
redis.pcall('PUBLISH', channel, ending)
return {1}
