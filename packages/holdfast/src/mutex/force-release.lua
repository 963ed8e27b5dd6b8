--[[
  mutex/force-release: take the mutex away from a specific holder, and notify that holder.

  The caller names the holder by owner, by token, or by both. Nothing happens if the holder has changed. The fence is
  raised even without waiters, so that the old holder learns from a late release that the lock was taken away.

  KEYS[1] lock    string, owner id of the holder; expires with its lease
  KEYS[2] fence   string, last token issued
  KEYS[3] queue   sorted set, owner of a waiting claim -> arrival number
  KEYS[4] handed  string, client whose grant by message is not confirmed yet
  KEYS[5] pause   string, the current pause, during which nothing is granted; expires at its end
  ARGV[1] owner   claim to release; empty to identify the hold by its token only
  ARGV[2] token   any token of the grant; empty to identify the hold by its owner only
  ARGV[3] inbox   prefix of inbox channels; a client's channel is the prefix plus the client id
  ARGV[4] note    text appended to the message to the holder; may be empty
  GRANTS  by hand-off
  REPLY   0      unchanged: free, or held by another claim
          1      released
]]
local owner, token, inbox, note = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

-- include notify
-- include notify-holder
-- include hand-off
local holder = redis.call('GET', KEYS[1])
local last = redis.call('GET', KEYS[2])
if not holder or (owner ~= '' and holder ~= owner) then
  return 0
end
if token ~= '' then
  -- A claim may have reserved several tokens, and the caller may pass any of them.
  local block = string.match(holder, '^[^/]+/%d+/%d+/(%d+)') or 1
  local after = last and last - token
  if not after or after < 0 or after - block >= 0 then
    return 0
  end
end

-- The message is sent before the hand-off, so that a client that also gets the next grant learns first who released
-- the lock and why.
local client, number = string.match(holder, '^([^/]+)/(%d+)/%d+/%d+')
if client then
  notifyHolder(inbox, client, '-' .. number .. note)
end
if not handOff(inbox) then
  if last and redis.call('GET', KEYS[2]) == last then
    redis.call('SET', KEYS[2], last + 1, 'PX', 600000)
  end
  redis.call('DEL', KEYS[1], KEYS[4])
end
return 1
