--[[
  admin/append-history: add to what is told of a name, and forget the oldest.

  Sent by those who want to be able to ask later, in a request of its own: no lock waits for it. An entry is written with
  the server's time less its age, so that entries of several hosts stand in one order. Sent twice, an entry is there twice;
  whoever reads knows it by what is in it.

  KEYS[1] history  stream of what has happened to one name
  ARGV[1] entries  lines of an age in ms, a space and the entry as JSON, each line with its end, oldest first
  ARGV[2] most     about how many entries to keep
  ARGV[3] keepMs   how long to keep them after the last one was added
  REPLY   1        appended
]]
local entries, most, keepMs = ARGV[1], ARGV[2], ARGV[3]

local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
for age, entry in string.gmatch(entries, '(%d+) ([^\n]+)\n') do
  redis.call('XADD', KEYS[1], 'MAXLEN', '~', most, '*', 'at', string.format('%.0f', nowMs - age), 'entry', entry)
end
redis.call('PEXPIRE', KEYS[1], keepMs)
return 1
