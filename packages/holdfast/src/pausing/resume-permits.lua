--[[
  pausing/resume-permits: end the pause of a lock with permits, and grant permits to all waiters that fit.

  A repeated request gets the same reply, and a copy that arrives after the next pause has begun does nothing.

  KEYS[1] state     hash: capacity, declared, used, top, free, first, until, keepMs; owner -> grant of each holder
  KEYS[2] fence     string, last token issued
  KEYS[3] holders   sorted set, owner of a holder -> end of its lease, in microseconds of the server's clock
  KEYS[4] slots     sorted set, free slot numbers below top
  KEYS[5] queue     sorted set, owner of a waiting claim -> arrival number
  KEYS[6] pause     string, the current pause, during which nothing is granted; expires at its end
  KEYS[7] resumed   string, `<resume request> <waiters> <now in ms> <pause>` of the last pause that `resume` ended
  ARGV[1] request   id of this request
  ARGV[2] inbox     prefix of inbox channels; a client's channel is the prefix plus the client id
  ARGV[3] only      the pause to end; empty for the current one, whichever it is
  ARGV[4] numbered  grants up to this weight get slot numbers; 0 for none
  GRANTS  by hand-off
  REPLY   {0}                             running: there is no pause
          {1, nowMs, waiters, texts...}  resumed: waiters is the number of waiters, texts the pause that ended
          {2, nowMs, texts...}           other: texts is the current pause, which differs from `only` and continues
]]
local request, inbox, only, numbered, owner = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ''

local doneBy, doneWaiters, doneMs, done = string.match(redis.call('GET', KEYS[7]) or '', '^(%S+) (%d+) (%d+) (%S+)$')
if doneBy == request then
  return {1, tonumber(doneMs), tonumber(doneWaiters), done}
end

-- include notify
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
