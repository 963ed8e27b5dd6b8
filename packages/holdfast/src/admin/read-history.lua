--[[
  admin/read-history: what is told of a name, newest first. Changes nothing.

  KEYS[1] history  stream of what has happened to one name
  ARGV[1] sinceMs  how far back to go, from now
  ARGV[2] before   id of the last entry that was read, with a bracket before it; or + to begin
  ARGV[3] most     how many entries to give, 1 or more
  REPLY   {0, nowMs, words...}  read: the server's time in ms since 1970; words are id, time in ms and JSON of each entry
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
