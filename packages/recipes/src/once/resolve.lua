--[[
  recipes/once/resolve: record the outcome of a blocked call, as reported by an operator.

  A retry with the same arguments gets the same reply, as long as no attempt has begun since.

  KEYS[1] record   hash, see recipes/once/begin
  ARGV[1] state    done, with the value; or released, so that the next caller runs the call again
  ARGV[2] value    value for later callers
  ARGV[3] keepMs   how long the record lives from now
  ARGV[4] channel  channel that waiting callers subscribe to
  REPLY   {1}            resolved
          {2, state...}  unblocked: the call is not blocked; its state, empty if there is no record
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
