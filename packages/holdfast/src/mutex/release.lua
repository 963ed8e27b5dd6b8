--[[
  mutex/release: release the mutex if it is still ours, and grant it to the next waiter.

  This is one atomic step, so that the mutex is never free while a claim is waiting. A repeated request gets 3 if the
  mutex was granted to the next claim in the meantime. The client knows that it sent the request twice, and counts that
  reply as a release. The script also compares the token, because a late copy of an acquire request can grant the mutex
  again to a claim whose hold was force-released. That claim must still learn that its first grant has ended.

  KEYS[1] lock    string, owner id of the holder; expires with its lease
  KEYS[2] fence   string, last token issued
  KEYS[3] queue   sorted set, owner of a waiting claim -> arrival number
  KEYS[4] handed  string, client whose grant by message is not confirmed yet
  KEYS[5] pause   string, the current pause, during which nothing is granted; expires at its end
  ARGV[1] owner   id of the claim that was granted
  ARGV[2] token   last token of its block
  ARGV[3] inbox   prefix of inbox channels; a client's channel is the prefix plus the client id
  ARGV[4] freed   1 if this client may have deleted the lock already, without a script (docs/adr/149), in which case a
                  claim may be waiting for a free lock; otherwise 0
  GRANTS  by hand-off
  REPLY   1      released
          2      unclaimed: the lease has ended, and nothing has been granted since
          3      claimed: the lease has ended, and another claim has been granted since
          4      forgotten: the server has no record of the grant
          5      freed: as 2 or 4, but claims waited for the free lock, so it was passed to the next one
]]
local owner, token, inbox, freed = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

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

-- include why-lost
local lost = not isOurs and whyLost(holder, token)
if isOurs or (freed == '1' and not holder and lost ~= 3 and redis.call('EXISTS', KEYS[3]) == 1) then
  -- include notify
  -- include hand-off
  if not handOff(inbox) then
    redis.call('DEL', KEYS[1], KEYS[4])
  end
  return lost and 5 or 1
end
return lost
