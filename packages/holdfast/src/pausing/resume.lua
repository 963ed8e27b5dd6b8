--[[
  pausing/resume: end the pause of a mutex, and grant the first of those who wait.

  Sent again it gives the same answer, and a copy that comes after the next pause began ends nothing.

  KEYS[1] lock     string, owner of the claim that holds; expires with its lease
  KEYS[2] fence    string, last token issued
  KEYS[3] queue    sorted set, owner of a waiting claim -> arrival number
  KEYS[4] handed   string, client that was granted by message and has not confirmed
  KEYS[5] pause    string, the pause that keeps everybody from being granted; expires at its end
  KEYS[6] resumed  string, `<resume request> <waiters> <now in ms> <pause>` of the last that was resumed
  ARGV[1] request  id of this request
  ARGV[2] inbox    what a client id is appended to for the channel that the client listens on
  ARGV[3] only     the pause that is meant; empty for whichever stands
  GRANTS  by hand-off
  REPLY   {0}                             running: there is no pause
          {1, nowMs, waiters, texts...}  resumed: so many were waiting; the text is the pause that has ended
          {2, nowMs, texts...}           other: another than the one that was meant stands, and goes on
]]
local request, inbox, only = ARGV[1], ARGV[2], ARGV[3]

local doneBy, doneWaiters, doneMs, done = string.match(redis.call('GET', KEYS[6]) or '', '^(%S+) (%d+) (%d+) (%S+)$')
if doneBy == request then
  return {1, tonumber(doneMs), tonumber(doneWaiters), done}
end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local nowMs = math.floor(now / 1000)
local pause = redis.call('GET', KEYS[5])
if not pause then
  return {0}
end
if only ~= '' and only ~= pause then
  return {2, nowMs, pause}
end
-- include tell
-- include hand-off
redis.call('DEL', KEYS[5])
local waiters = redis.call('ZCARD', KEYS[3])
redis.call('SET', KEYS[6], request .. string.format(' %.0f %.0f ', waiters, nowMs) .. pause, 'PX', 600000)
if not redis.call('GET', KEYS[1]) and not handOff(inbox, nil, now) then
  -- Kept for the pause until now.
  redis.call('PEXPIRE', KEYS[2], 600000)
end
return {1, nowMs, waiters, pause}
