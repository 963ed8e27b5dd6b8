--[[
  mutex/release: give the mutex back, if it is still ours, to the next waiter.

  One step, so that there is no moment in which the mutex is free while somebody waits. Sent again it answers
  3, since the next claim has been granted by then; core knows that it asked twice. The token is compared too: a
  claim that was ended by force is granted anew by a late copy of its request, and must learn that its own grant
  had ended.

  KEYS[1] lock    string, owner of the claim that holds; expires with its lease
  KEYS[2] fence   string, last token issued
  KEYS[3] queue   sorted set, owner of a waiting claim -> arrival number
  KEYS[4] handed  string, client that was granted by message and has not confirmed
  KEYS[5] pause   string, the pause that keeps everybody from being granted; expires at its end
  ARGV[1] owner   id of the claim that was granted
  ARGV[2] token   last token of its block
  ARGV[3] inbox   what a client id is appended to for the channel that the client listens on
  GRANTS  by hand-off
  REPLY   1      released
          2      unclaimed: it had ended, and nobody was granted since
          3      claimed: it had ended, and somebody else was granted since
          4      forgotten: the server does not know that it ever was
]]
local owner, token, inbox = ARGV[1], ARGV[2], ARGV[3]

local holder = redis.call('GET', KEYS[1])
local isOurs = holder == owner
if isOurs then
  local last = redis.call('GET', KEYS[2])
  isOurs = not last or last - token == 0
end
if isOurs and redis.call('EXISTS', KEYS[3]) == 0 then
  redis.call('DEL', KEYS[1], KEYS[4])
  return 1
end

-- include tell
-- include hand-off
if isOurs then
  if not handOff(inbox) then
    redis.call('DEL', KEYS[1], KEYS[4])
  end
  return 1
end

-- include why-lost
return whyLost(holder, token)
