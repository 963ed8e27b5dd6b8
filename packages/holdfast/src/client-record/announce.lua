--[[
  client-record/announce: write who a client is, and keep that record for a while.

  Owners carry only the client's id; this record says which process that is. It is read when somebody asks who
  holds a lock, never on the way to a grant.

  KEYS[1] client    hash, host, pid, name, version and protocol of the process, since when it is there and when this was last
                    written, in microseconds, and the nonce of that write
  ARGV[1] host      host name
  ARGV[2] pid       process id on that host
  ARGV[3] name      the clientName option, or empty
  ARGV[4] version   version of the library
  ARGV[5] protocol  version of the protocol: of the keys, messages and owner ids
  ARGV[6] ageMs     how long this client has been there; an age, because its clock may differ from the server's
  ARGV[7] keepMs    how long the record lives from now
  ARGV[8] nonces    of this write, and of the last ones of this client, each with a space before and behind it
  ARGV[9] timeouts  how its client library notices a dead connection, as JSON; empty if that is not known
  REPLY   1              announced
          {2, words...}  shared: announced as well, but somebody else has written it before: host and pid, as written there
]]
local host, pid, name, version, protocol, ageMs, keepMs = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], ARGV[7]
local nonces = ARGV[8]

local before = redis.call('HMGET', KEYS[1], 'nonce', 'host', 'pid')
local isShared = before[1] and not string.find(nonces, ' ' .. before[1] .. ' ', 1, true)

local time = redis.call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local seen, since = string.format('%.0f', nowUs), string.format('%.0f', nowUs - ageMs * 1000)
redis.call('HSET', KEYS[1], 'host', host, 'pid', pid, 'name', name, 'version', version, 'protocol', protocol,
  'nonce', string.match(nonces, '^ (%S+) '), 'seen', seen, 'since', since)
redis.call('HSET', KEYS[1], 'timeouts', ARGV[9])
redis.call('PEXPIRE', KEYS[1], keepMs)
if isShared then
  return {2, before[2] or '', before[3] or ''}
end
return 1
