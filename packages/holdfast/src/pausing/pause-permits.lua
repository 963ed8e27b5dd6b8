--[[
  pausing/pause-permits: pause a lock with permits. Holders keep theirs, and nothing is granted until the pause ends.

  If no permits are held, the fence is raised, as for a grant. A repeated request gets the same reply, and a copy that
  arrives after the lock has been resumed does nothing.

  KEYS[1] state     hash: capacity, declared, used, top, free, first, until, keepMs; owner -> grant of each holder
  KEYS[2] fence     string, last token issued
  KEYS[3] holders   sorted set, owner of a holder -> end of its lease, in microseconds of the server's clock
  KEYS[4] slots     sorted set, free slot numbers below top
  KEYS[5] queue     sorted set, owner of a waiting claim -> arrival number
  KEYS[6] pause     string, the current pause, during which nothing is granted; expires at its end
  KEYS[7] resumed   string, `<resume request> <waiters> <now in ms> <pause>` of the last pause that `resume` ended
  ARGV[1] request   id of this request
  ARGV[2] untilMs   end of the pause, in ms since 1970
  ARGV[3] words     author and reason, percent-encoded, separated by a slash
  ARGV[4] inbox     prefix of inbox channels; a client's channel is the prefix plus the client id
  ARGV[5] numbered  grants up to this weight get slot numbers; 0 for none
  GRANTS  by hand-off
  REPLY   {0, nowMs, texts...}  standing: the lock was already paused; texts is that pause
          {1, nowMs, texts...}  paused: texts is the pause
          {2, nowMs}            over: untilMs has passed
          {3, nowMs}            ended: the lock was already resumed
]]
local request, untilMs, words = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local inbox, numbered, owner = ARGV[4], tonumber(ARGV[5]), ''

-- include notify
-- include permits-state
-- include permits
-- include permits-grant
local nowMs = math.floor(now / 1000)
local pause = redis.call('GET', KEYS[6])
if pause then
  return {string.match(pause, '^pause/%d+/%d+/%d+/([^/]*)') == request and 1 or 0, nowMs, pause}
end
if string.find(redis.call('GET', KEYS[7]) or '', '/' .. request .. '/', 1, true) then
  return {3, nowMs}
end
if untilMs <= nowMs then
  return {2, nowMs}
end

pause = string.format('pause/%.0f/%.0f/1/', nowMs, untilMs) .. request .. '/' .. words
redis.call('SET', KEYS[6], pause, 'PX', string.format('%.0f', untilMs - nowMs))
reap()
-- This grants nothing during the pause, but it raises the fence. On a server that must not grant yet, a variant of
-- this script leaves the fence as it is, because a holder may still reclaim its lease.
wasHeld = true
grantHeads()
return {1, nowMs, pause}
