--[[
  period-marker/end: record how the last run ended.

  Records nothing if another run has started since. A repeated request changes nothing.

  KEYS[1] marker  hash of the last run; see period-marker/start
  ARGV[1] owner   id of the claim under which the run was started
  ARGV[2] token   token of its grant
  ARGV[3] code    exit code of the run; 0 means success
  REPLY   0       superseded: another run has started since, or the record is gone
          1       noted
]]
local owner, token, code = ARGV[1], ARGV[2], ARGV[3]

local last = redis.call('HMGET', KEYS[1], 'owner', 'token', 'read', 'ended')
if last[1] ~= owner or last[2] ~= token then
  return 0
end
if not last[4] then
  local time = redis.call('TIME')
  redis.call('HSET', KEYS[1], 'code', code, 'ended', string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)))
  if code == '0' then
    redis.call('HSET', KEYS[1], 'ok', last[3])
  end
end
return 1
