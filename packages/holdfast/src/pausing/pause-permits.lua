--[[
  pausing/pause-permits: pause permits, so that whoever holds some goes on and nobody is granted after.

  If nobody holds any, the fence moves, as for a grant. Sent again it gives the same answer, and a copy that comes after
  somebody has resumed pauses nothing.

  KEYS[1] state     hash: capacity, declared, used, top, free, first, until, keepMs; owner -> grant of each holder
  KEYS[2] fence     string, last token issued
  KEYS[3] holders   sorted set, owner of a holder -> end of its lease, in microseconds of the server's clock
  KEYS[4] slots     sorted set, free slot numbers below top
  KEYS[5] queue     sorted set, owner of a waiting claim -> arrival number
  KEYS[6] pause     string, the pause that keeps everybody from being granted; expires at its end
  KEYS[7] resumed   string, `<resume request> <waiters> <now in ms> <pause>` of the last that was resumed
  ARGV[1] request   id of this request
  ARGV[2] untilMs   when it ends by itself, in ms since 1970
  ARGV[3] words     who pauses and why, percent-encoded, with a slash between
  ARGV[4] inbox     what a client id is appended to for the channel that the client listens on
  ARGV[5] numbered  the heaviest grant whose permits are numbered; 0 for none
  GRANTS  by hand-off
  REPLY   {0, nowMs, texts...}  standing: somebody has paused it before; the text is that pause
          {1, nowMs, texts...}  paused: the text is the pause
          {2, nowMs}            over: its end has passed
          {3, nowMs}            ended: it was resumed already
]]
local request, untilMs, words = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local inbox, numbered, owner = ARGV[4], tonumber(ARGV[5]), ''

-- include tell
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
-- Grants nobody now, but moves the fence; not while this server may not grant, because a holder may put its lease back.
wasHeld = true
grantHeads()
return {1, nowMs, pause}
