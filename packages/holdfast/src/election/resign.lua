--[[
  election/resign: stop leading, and tell all who observe; the next candidate leads at once.

  Of the record the count of terms stays, until it expires. The term is compared too: a claim that was ended by force is granted
  anew by a late copy of its request, and must learn that its own term had ended.

  KEYS[1] lock     string, owner of the claim that leads; expires with its lease
  KEYS[2] fence    string, last term
  KEYS[3] queue    sorted set, owner of a candidate -> arrival number
  KEYS[4] handed   string, client that was granted by message and has not confirmed
  KEYS[5] pause    string, the pause that keeps everybody from being elected; expires at its end
  KEYS[6] record   hash, term, value, owner and number of the last proclamation, and how many terms there were
  ARGV[1] owner    id of the claim that leads
  ARGV[2] term     its term
  ARGV[3] inbox    what a client id is appended to for the channel that the client listens on
  ARGV[4] channel  where observers listen
  GRANTS  by hand-off
  REPLY   1        released
          2        unclaimed: its lease had ended, and nobody leads since
          3        claimed: its lease had ended, and somebody else has led since
          4        forgotten: the server does not know that it ever led
]]
local owner, term, inbox, channel = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

-- include holds
-- include why-lost
if not holds(owner, term) then
  return whyLost(redis.call('GET', KEYS[1]), term)
end

-- include tell
-- include hand-off
redis.call('HDEL', KEYS[6], 'value')
if not handOff(inbox) then
  redis.call('DEL', KEYS[1], KEYS[4])
end
redis.pcall('PUBLISH', channel, 'changed')
return 1
