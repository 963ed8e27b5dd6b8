--[[
  client-record/mark: mark the protocol of this client as in use, unless another one is in use.

  Checking and marking are one atomic step. So if two clients with different protocols start together, only one
  succeeds. Clients of all major versions share this key and its format; see docs/adr/134-protocol-versions.md.

  KEYS[1] marker    hash with one field for each major version in use: `<seenMs> <untilMs> <clientId> <library version>`
  ARGV[1] protocol  major version of the caller
  ARGV[2] clientId  id of the caller
  ARGV[3] version   version of the caller's library
  ARGV[4] keepMs    how long the mark is valid from now
  REPLY   {1}                  marked
          {2, leftMs, words...}  foreign: another protocol is in use, and the caller is not marked; leftMs is how long
                               the other mark stays valid unless renewed; words are its protocol, client id and version
]]
local protocol, clientId, version, keepMs = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local untilMs = nowMs + keepMs

local marks = redis.call('HGETALL', KEYS[1])
local foreign
for i = 1, #marks, 2 do
  local major = marks[i]
  local _, markedUntil, id, library = string.match(marks[i + 1], '^(%d+) (%d+) (%S+) (%S+)$')
  local markedUntilMs = tonumber(markedUntil)
  if markedUntilMs and major == protocol then
    -- Never shortens the mark, because another client of this version may have longer leases.
    untilMs = math.max(untilMs, markedUntilMs)
  elseif markedUntilMs and major ~= '0' then
    if markedUntilMs <= nowMs then
      redis.call('HDEL', KEYS[1], major)
    elseif not foreign or markedUntilMs > foreign.untilMs then
      foreign = {untilMs = markedUntilMs, words = {major, id, library}}
    end
  end
end
if foreign then
  local words = foreign.words
  return {2, foreign.untilMs - nowMs, words[1], words[2], words[3]}
end

local seen, last = string.format('%.0f', nowMs), string.format('%.0f', untilMs)
redis.call('HSET', KEYS[1], protocol, seen .. ' ' .. last .. ' ' .. clientId .. ' ' .. version)
redis.call('PEXPIRE', KEYS[1], string.format('%.0f', untilMs - nowMs))
return {1}
