--[[
  client-record/announce: write who a client is, and keep that record for a while.

  Owners carry only the client's id; this record says which process that is. It is read when somebody asks who
  holds a lock, never on the way to a grant.

  KEYS[1] client   hash, host, pid, name and version of the process, and when it was last written, in microseconds
  ARGV[1] host     host name
  ARGV[2] pid      process id on that host
  ARGV[3] name     the clientName option, or empty
  ARGV[4] version  version of the library
  ARGV[5] keepMs   how long the record lives from now
  REPLY   1        announced
]]
local host, pid, name, version, keepMs = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local time = redis.call('TIME')
local seen = string.format('%.0f', time[1] * 1000000 + time[2])
redis.call('HSET', KEYS[1], 'host', host, 'pid', pid, 'name', name, 'version', version, 'seen', seen)
redis.call('PEXPIRE', KEYS[1], keepMs)
return 1
