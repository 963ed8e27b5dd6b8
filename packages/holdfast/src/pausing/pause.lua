--[[
  pausing/pause: pause a mutex, so that whoever holds it goes on and nobody is granted after.

  If it is free the fence moves, as for a grant. Sent again it gives the same answer, and a copy that comes after somebody
  has resumed pauses nothing.

  KEYS[1] lock       string, owner of the claim that holds; expires with its lease
  KEYS[2] fence      string, last token issued
  KEYS[3] queue      sorted set, owner of a waiting claim -> arrival number
  KEYS[4] handed     string, client that was granted by message and has not confirmed
  KEYS[5] pause      string, the pause that keeps everybody from being granted; expires at its end
  KEYS[6] resumed    string, `<resume request> <waiters> <now in ms> <pause>` of the last that was resumed
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
local pause = redis.call('GET', KEYS[5])
if pause then
  return {string.match(pause, '^pause/%d+/%d+/%d+/([^/]*)') == request and 1 or 0, nowMs, pause}
end
if string.find(redis.call('GET', KEYS[6]) or '', '/' .. request .. '/', 1, true) then
  return {3, nowMs}
end
if untilMs <= nowMs then
  return {2, nowMs}
end

-- include tell
-- include hand-off
pause = string.format('pause/%.0f/%.0f/1/', nowMs, untilMs) .. request .. '/' .. words
redis.call('SET', KEYS[5], pause, 'PX', string.format('%.0f', untilMs - nowMs))
if not redis.call('GET', KEYS[1]) then
  -- Grants nobody now, but moves the fence; not while this server may not grant, because a holder may put its lease back.
  handOff(inbox, nil, now)
end
return {1, nowMs, pause}
