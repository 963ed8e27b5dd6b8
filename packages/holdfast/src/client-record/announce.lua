--[[
  client-record/announce: write the record of a client, and keep it for a while.

  An owner id identifies the process only by its client id. This record says which process that is. It is read for
  reports on holders, never for a grant.

  KEYS[1] client    hash: host, pid, name, version and protocol of the process; since and seen, the start of the client
                    and the last write, in microseconds; nonce, the nonce of the last write; timeouts, as in ARGV[9]
  ARGV[1] host      host name
  ARGV[2] pid       process id on that host
  ARGV[3] name      the clientName option, or empty
  ARGV[4] version   version of the library
  ARGV[5] protocol  version of the protocol: keys, messages and owner ids
  ARGV[6] ageMs     age of this client, not its start time, because its clock may differ from the server's
  ARGV[7] keepMs    lifetime of the record from now
  ARGV[8] nonces    nonces of this write and of the client's last ones, newest first, with a space around each
  ARGV[9] timeouts  timeouts with which its client library detects a dead connection, as JSON; empty if unknown
  REPLY   1              announced
          {2, words...}  shared: announced, but another process wrote the previous record; words are its host and pid
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
