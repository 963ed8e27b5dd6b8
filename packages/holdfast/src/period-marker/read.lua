--[[
  period-marker/read: the last run and the server's time. Changes nothing.

  KEYS[1] marker  hash of the last run; see period-marker/start
  REPLY   {0, nowMs, texts...}  none: no run is on record; nowMs is the server's time in ms since 1970
          {1, nowMs, texts...}  ran: texts are the fields of the marker from owner to code, empty if missing
]]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local last = redis.call('HMGET', KEYS[1], 'owner', 'token', 'host', 'pid', 'name', 'label', 'read', 'started', 'ended', 'code')
if not last[1] then
  return {0, nowMs}
end
local reply = {1, nowMs}
for n = 1, 10 do
  reply[n + 2] = last[n] or ''
end
return reply
