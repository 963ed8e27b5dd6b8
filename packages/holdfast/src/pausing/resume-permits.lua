--[[
  pausing/resume-permits: end the pause of permits, and grant all those who wait and fit.

  Sent again it gives the same answer, and a copy that comes after the next pause began ends nothing.

  KEYS[1] state     hash: capacity, declared, used, top, free, first, until, keepMs; owner -> grant of each holder
  KEYS[2] fence     string, last token issued
  KEYS[3] holders   sorted set, owner of a holder -> end of its lease, in microseconds of the server's clock
  KEYS[4] slots     sorted set, free slot numbers below top
  KEYS[5] queue     sorted set, owner of a waiting claim -> arrival number
  KEYS[6] pause     string, the pause that keeps everybody from being granted; expires at its end
  KEYS[7] resumed   string, `<resume request> <waiters> <now in ms> <pause>` of the last that was resumed
  ARGV[1] request   id of this request
  ARGV[2] inbox     what a client id is appended to for the channel that the client listens on
  ARGV[3] only      the pause that is meant; empty for whichever stands
  ARGV[4] numbered  the heaviest grant whose permits are numbered; 0 for none
  GRANTS  by hand-off
  REPLY   {0}                             running: there is no pause
          {1, nowMs, waiters, texts...}  resumed: so many were waiting; the text is the pause that has ended
          {2, nowMs, texts...}           other: another than the one that was meant stands, and goes on
]]
local request, inbox, only, numbered, owner = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ''

local doneBy, doneWaiters, doneMs, done = string.match(redis.call('GET', KEYS[7]) or '', '^(%S+) (%d+) (%d+) (%S+)$')
if doneBy == request then
  return {1, tonumber(doneMs), tonumber(doneWaiters), done}
end

-- include tell
-- include permits-state
-- include permits
-- include permits-grant
local nowMs = math.floor(now / 1000)
local pause = redis.call('GET', KEYS[6])
if not pause then
  return {0}
end
if only ~= '' and only ~= pause then
  return {2, nowMs, pause}
end
redis.call('DEL', KEYS[6])
local waiters = redis.call('ZCARD', KEYS[5])
redis.call('SET', KEYS[7], request .. string.format(' %.0f %.0f ', waiters, nowMs) .. pause, 'PX', 600000)
reap()
grantHeads()
return {1, nowMs, waiters, pause}
