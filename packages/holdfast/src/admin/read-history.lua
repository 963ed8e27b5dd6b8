--[[
  admin/read-history: return the history of a name, newest first. Read-only.

  KEYS[1] history  stream of the events of one name
  ARGV[1] sinceMs  how far back to read, from now
  ARGV[2] before   `(` and the id of the last entry that was read, or + for the first page
  ARGV[3] most     how many entries to return, 1 or more
  REPLY   {0, nowMs, words...}  read: the server's time in ms since 1970; words has the id, the time in ms and the JSON
                                of each entry
]]
local sinceMs, before, most = ARGV[1], ARGV[2], ARGV[3]

local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local from = string.format('%.0f', math.max(0, nowMs - sinceMs))
local reply = {0, nowMs}
for _, entry in ipairs(redis.call('XREVRANGE', KEYS[1], before, from, 'COUNT', most)) do
  reply[#reply + 1] = entry[1]
  reply[#reply + 1] = entry[2][2]
  reply[#reply + 1] = entry[2][4]
end
return reply
