--[[
  admin/read-client: return the record of a client, and the server's time. Read-only.

  KEYS[1] client  hash with the host, pid, name, version and protocol of the process, and the times at which the client
                  started and last wrote this record, in microseconds
  REPLY   {0, nowMs, texts...}  gone: there is no such record
          {1, nowMs, texts...}  known: the server's time in ms since 1970; host, pid, name, version, time of the record,
                                start time of the client, and protocol, 0 if the record has none
]]
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local fields = redis.call('HMGET', KEYS[1], 'host', 'pid', 'name', 'version', 'seen', 'since', 'protocol')
if not fields[1] then
  return {0, nowMs}
end
return {1, nowMs, fields[1], fields[2] or '', fields[3] or '', fields[4] or '', fields[5] or '', fields[6] or '',
  fields[7] or '0'}
