--[[
  pausing/pause-permits: put a pause at the head of the queue for permits, so that whoever holds goes on and nobody is
  granted after.

  When nobody holds it takes all there is. Where no capacity is on record yet, it waits for whoever declares one. Sent again
  it gives the same answer, and a copy that comes after somebody has resumed pauses nothing.

  KEYS[1] state     hash: capacity, declared, used, top, free, first, until, keepMs; owner -> grant of each holder
  KEYS[2] fence     string, last token issued
  KEYS[3] holders   sorted set, owner of a holder -> end of its lease, in microseconds of the server's clock
  KEYS[4] slots     sorted set, free slot numbers below top
  KEYS[5] queue     sorted set, owner of a waiting claim -> arrival number
  KEYS[6] resumed   string, `<resume request> <waiters> <now in ms> <pause>` of the last that was resumed
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
-- include permits-paused
local nowMs = math.floor(now / 1000)
reap()
local pause = pauseThatHolds() or pauseAtHead()
if pause then
  return {string.match(pause, '^pause/%d+/%d+/%d+/([^/]*)') == request and 1 or 0, nowMs, pause}
end
if string.find(redis.call('GET', KEYS[6]) or '', '/' .. request .. '/', 1, true) then
  return {3, nowMs}
end
if untilMs <= nowMs then
  return {2, nowMs}
end

pause = string.format('pause/%.0f/%.0f/1/', nowMs, untilMs) .. request .. '/' .. words
local head = redis.call('ZRANGE', KEYS[5], 0, 0, 'WITHSCORES')[2] or 1
redis.call('ZADD', KEYS[5], head - 1, pause)
redis.call('PEXPIRE', KEYS[5], string.format('%.0f', untilMs - nowMs + 86400000))
grantHeads()
return {1, nowMs, pause}
