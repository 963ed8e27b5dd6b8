--[[
  election/leader: the leader and its value. Changes nothing.

  A granted claim leads from its first proclamation on. Until then, there is no leader.

  KEYS[1] lock    string, owner id of the leader; expires with its lease
  KEYS[2] fence   string, last term
  KEYS[3] record  hash: term, value, owner and number of the last proclamation, and terms, the number of terms
  REPLY   {0}                                 vacant
          {1, restMs, term, terms, texts...}  led: the lease ends in restMs unless renewed; terms as in record; texts
                                              are owner and value
]]
local holder = redis.call('GET', KEYS[1])
local last = redis.call('GET', KEYS[2])
local proclaimed = redis.call('HMGET', KEYS[3], 'term', 'value', 'terms')
if not holder or not last or not proclaimed[1] or proclaimed[1] - last ~= 0 then
  return {0}
end
return {1, redis.call('PTTL', KEYS[1]), tonumber(last), tonumber(proclaimed[3] or 1), holder, proclaimed[2]}
