--[[
  election/resign: stop leading, grant to the next candidate, and notify all observers.

  The number of terms stays in the record until the record expires. The script also compares the term, because a late
  copy of an acquire request can grant the lock again to a claim whose hold was force-released. That claim must still
  learn that its first term has ended.

  KEYS[1] lock     string, owner id of the leader; expires with its lease
  KEYS[2] fence    string, last term
  KEYS[3] queue    sorted set, owner of a candidate -> arrival number
  KEYS[4] handed   string, client whose grant by message is not confirmed yet
  KEYS[5] pause    string, the current pause, during which no candidate is elected; expires at its end
  KEYS[6] record   hash: term, value, owner and number of the last proclamation, and terms, the number of terms
  ARGV[1] owner    id of the claim that leads
  ARGV[2] term     its term
  ARGV[3] inbox    prefix of inbox channels; a client's channel is the prefix plus the client id
  ARGV[4] channel  channel of the observers
  GRANTS  by hand-off
  REPLY   1        released
          2        unclaimed: the lease had ended, and no claim has led since
          3        claimed: the lease had ended, and another claim has led since
          4        forgotten: the server has no record of the term
]]
local owner, term, inbox, channel = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

-- include holds
-- include why-lost
if not holds(owner, term) then
  return whyLost(redis.call('GET', KEYS[1]), term)
end

-- include notify
-- include hand-off
redis.call('HDEL', KEYS[6], 'value')
if not handOff(inbox) then
  redis.call('DEL', KEYS[1], KEYS[4])
end
redis.pcall('PUBLISH', channel, 'changed')
return 1
