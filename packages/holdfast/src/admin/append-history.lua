--[[
  admin/append-history: add entries to the history of a name, and remove the oldest ones.

  It is a separate request, so no lock waits for it. The time of an entry is the server's time minus the entry's age, so
  the times of entries from several hosts are comparable. An entry that is sent twice is stored twice. Readers recognize
  the duplicate by its content.

  KEYS[1] history  stream of the events of one name
  ARGV[1] entries  lines with an age in ms, a space and the entry as JSON, each ended by a newline, oldest first
  ARGV[2] most     about how many entries to keep
  ARGV[3] keepMs   how long to keep the history after this call
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
