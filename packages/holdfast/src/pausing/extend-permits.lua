--[[
  pausing/extend-permits: give the pause of permits another end.

  As pausing/extend.

  KEYS[1] state    hash: capacity, declared, used, top, free, first, until, keepMs; owner -> grant of each holder
  KEYS[2] fence    string, last token issued
  KEYS[3] holders  sorted set, owner of a holder -> end of its lease, in microseconds of the server's clock
  KEYS[4] slots    sorted set, free slot numbers below top
  KEYS[5] queue    sorted set, owner of a waiting claim -> arrival number
  ARGV[1] pause    the pause that is meant
  ARGV[2] renewed  the same pause with its new end
  ARGV[3] untilMs  that end, in ms since 1970
  ARGV[4] inbox    what a client id is appended to for the channel that the client listens on
  ARGV[5] numbered the heaviest grant whose permits are numbered; 0 for none
  GRANTS  by hand-off
  REPLY   {0, nowMs, texts...}  other: another pause stands, which is the text; or none
          {1, nowMs}            extended
          {2, nowMs}            over: the new end has passed
]]
local meant, renewed, untilMs = ARGV[1], ARGV[2], tonumber(ARGV[3])
local inbox, numbered, owner = ARGV[4], tonumber(ARGV[5]), ''

-- include tell
-- include permits-state
-- include permits
-- include permits-grant
-- include permits-paused
local nowMs = math.floor(now / 1000)
reap()
local holding = pauseThatHolds()
local pause = holding or pauseAtHead()
if pause == renewed then
  return {1, nowMs}
end
if pause ~= meant then
  grantHeads()
  return {0, nowMs, pause}
end
local restMs = untilMs - nowMs
if restMs <= 0 then
  return {2, nowMs}
end
if holding then
  local grant = redis.call('HGET', KEYS[1], holding)
  local weight, token = string.match(grant, '^(%d+)/(%d+)/')
  giveBack(holding, grant)
  -- Its keys live as long as it does, and no longer, be the new end later or earlier.
  keepUntil = 0
  grantTo(renewed, tonumber(weight), restMs, tonumber(token), '')
else
  local place = redis.call('ZSCORE', KEYS[5], pause)
  redis.call('ZREM', KEYS[5], pause)
  redis.call('ZADD', KEYS[5], place, renewed)
  redis.call('PEXPIRE', KEYS[5], string.format('%.0f', restMs + 86400000))
end
return {1, nowMs}
