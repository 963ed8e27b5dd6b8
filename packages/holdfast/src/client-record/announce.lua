--[[
  client-record/announce: write who a client is, and keep that record for a while.

  Owners carry only the client's id; this record says which process that is. It is read when somebody asks who
  holds a lock, never on the way to a grant.

  KEYS[1] client   hash, host, pid, name and version of the process, since when it is there and when this was last written,
                   in microseconds
  ARGV[1] host     host name
  ARGV[2] pid      process id on that host
  ARGV[3] name     the clientName option, or empty
  ARGV[4] version  version of the library
  ARGV[5] ageMs    how long this client has been there; an age, since its clock may differ from the server's
  ARGV[6] keepMs   how long the record lives from now
  ARGV[7] timeouts how its client library notices a dead connection, as JSON; empty if that is not known
  REPLY   1        announced
]]
local host, pid, name, version, ageMs, keepMs = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]

local time = redis.call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local seen, since = string.format('%.0f', nowUs), string.format('%.0f', nowUs - ageMs * 1000)
redis.call('HSET', KEYS[1], 'host', host, 'pid', pid, 'name', name, 'version', version, 'seen', seen, 'since', since)
redis.call('HSET', KEYS[1], 'timeouts', ARGV[7])
redis.call('PEXPIRE', KEYS[1], keepMs)
return 1
