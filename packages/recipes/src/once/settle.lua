--[[
  recipes/once/settle: end an attempt and record its outcome, if the call still belongs to it.

  If another attempt has taken the call over, this one records nothing, so a late attempt never overwrites its
  successor. A retry with the same owner changes nothing and gets the same reply.

  KEYS[1] record   hash, see recipes/once/begin
  ARGV[1] owner    id of the attempt
  ARGV[2] state    done, failed, bare (done, without its value), blocked or released
  ARGV[3] value    value or error for later callers; or why the call is blocked
  ARGV[4] keepMs   how long the record lives from now
  ARGV[5] channel  channel that waiting callers subscribe to; the message is the state
  REPLY   {1}            settled
          {2, state...}  superseded: another attempt has the call, or there is no record
]]
local owner, ending, value, keepMs, channel = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local record = redis.call('HMGET', KEYS[1], 'state', 'owner')
if record[2] ~= owner then
  return {2, record[1] or ''}
end
if record[1] ~= 'running' then
  return {1}
end
local time = redis.call('TIME')
local nowMs = math.floor((time[1] * 1000000 + time[2]) / 1000)
-- A server at its memory limit accepts this command, and then all later writes of this script (docs/adr/135).
redis.call('PEXPIRE', KEYS[1], keepMs)
redis.call('HSET', KEYS[1], 'state', ending, 'value', value, 'ended', string.format('%.0f', nowMs))
redis.pcall('PUBLISH', channel, ending)
return {1}
