--[[
  pausing/pause: put a pause at the head of a mutex's queue, so that whoever holds goes on and nobody is granted after.

  If it is free the pause takes it at once, by the same hand-off as every other claim. Sent again it gives the same answer,
  and a copy that comes after somebody has resumed pauses nothing.

  KEYS[1] lock       string, owner of the claim that holds; expires with its lease
  KEYS[2] fence      string, last token issued
  KEYS[3] queue      sorted set, owner of a waiting claim -> arrival number
  KEYS[4] handed     string, client that was granted by message and has not confirmed
  KEYS[5] resumed    string, `<resume request> <waiters> <now in ms> <pause>` of the last that was resumed
  ARGV[1] request    id of this request
  ARGV[2] untilMs    when it ends by itself, in ms since 1970
  ARGV[3] words      who pauses and why, percent-encoded, with a slash between
  ARGV[4] inbox      what a client id is appended to for the channel that the client listens on
  GRANTS  by hand-off
  REPLY   {0, nowMs, texts...}  standing: somebody has paused it before; the text is that pause
          {1, nowMs, texts...}  paused: the text is the pause
          {2, nowMs}            over: its end has passed
          {3, nowMs}            ended: it was resumed already
]]
local request, untilMs, words, inbox = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4]

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local nowMs = math.floor(now / 1000)
-- include tell
-- include hand-off
-- include paused
local holder = redis.call('GET', KEYS[1])
local pause = holder and string.match(holder, '^pause/.*') or pauseAtHead(now)
if pause then
  return {string.match(pause, '^pause/%d+/%d+/%d+/([^/]*)') == request and 1 or 0, nowMs, pause}
end
if string.find(redis.call('GET', KEYS[5]) or '', '/' .. request .. '/', 1, true) then
  return {3, nowMs}
end
if untilMs <= nowMs then
  return {2, nowMs}
end

pause = string.format('pause/%.0f/%.0f/1/', nowMs, untilMs) .. request .. '/' .. words
local first = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')[2] or 1
redis.call('ZADD', KEYS[3], first - 1, pause)
redis.call('PEXPIRE', KEYS[3], string.format('%.0f', untilMs - nowMs + 86400000))
if not holder then
  handOff(inbox, nil, now)
end
return {1, nowMs, pause}
