--[[
  mutex/force-release: take the mutex away from the holder that the caller has seen, and tell that holder.

  The caller names the holder by owner, by token, or by both, and nothing happens if it has changed meanwhile.
  The fence moves even when nobody waits, so that the old holder's own release learns that it was too late.

  KEYS[1] lock    string, owner of the claim that holds; expires with its lease
  KEYS[2] fence   string, last token issued
  KEYS[3] queue   sorted set, owner of a waiting claim -> arrival number
  KEYS[4] handed  string, client that was granted by message and has not confirmed
  KEYS[5] pause   string, the pause that keeps everybody from being granted; expires at its end
  ARGV[1] owner   whose hold to end; empty to go by the token alone
  ARGV[2] token   which grant to end, by any token of its block; empty to go by the owner alone
  ARGV[3] inbox   what a client id is appended to for the channel that the client listens on
  ARGV[4] note    what the holder is told beside; empty for nothing
  GRANTS  by hand-off
  REPLY   0      unchanged: free, or held by somebody else
          1      released
]]
local owner, token, inbox, note = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

-- include tell
-- include tell-holder
-- include hand-off
local holder = redis.call('GET', KEYS[1])
local last = redis.call('GET', KEYS[2])
if not holder or (owner ~= '' and holder ~= owner) then
  return 0
end
if token ~= '' then
  -- A claim may have reserved several tokens, of which its holder knows one.
  local block = string.match(holder, '^[^/]+/%d+/%d+/(%d+)') or 1
  local after = last and last - token
  if not after or after < 0 or after - block >= 0 then
    return 0
  end
end

-- Told first: where both are of one client, it hears by whom and why before it hears of the next grant.
local client, number = string.match(holder, '^([^/]+)/(%d+)/%d+/%d+')
if client then
  tellHolder(inbox, client, '-' .. number .. note)
end
if not handOff(inbox) then
  if last and redis.call('GET', KEYS[2]) == last then
    redis.call('SET', KEYS[2], last + 1, 'PX', 600000)
  end
  redis.call('DEL', KEYS[1], KEYS[4])
end
return 1
