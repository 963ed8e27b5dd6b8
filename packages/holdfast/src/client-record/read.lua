--[[
  client-record/read: the process of a client. Changes nothing.

  KEYS[1] client             hash: host, pid, name, version and protocol of the process
  REPLY   {0, fields...}     unknown: the client never wrote a record, or the record has expired
          {1, fields...}     known: host, pid, name, version, protocol; clients of protocol 0 store no protocol
]]
local fields = redis.call('HMGET', KEYS[1], 'host', 'pid', 'name', 'version', 'protocol')
if not fields[1] then
  return {0}
end
return {1, fields[1], fields[2], fields[3], fields[4], fields[5] or '0'}
