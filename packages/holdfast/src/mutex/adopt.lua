--[[
  mutex/adopt: move a held lease to another claim, as when one process hands its work to another.

  The token stays the same, so the resource sees one holder. From then on, the first claim holds nothing. A repeated
  request from the adopting claim gets the same reply. An adoption never shortens the lease, because the request may be
  a late copy that arrives after an extension.

  KEYS[1] lock     string, owner id of the holder; expires with its lease
  KEYS[2] fence    string, last token issued
  KEYS[3] handed   string, client whose grant by message is not confirmed yet
  ARGV[1] from     id of the claim that held the lease
  ARGV[2] to       id of the claim that takes over
  ARGV[3] token    last token of the grant
  ARGV[4] leaseMs  length of the lease, counted from now
  GRANTS  by itself
  REPLY   1        adopted
          2        unclaimed: the lease has ended, and nothing has been granted since
          3        claimed: the lease has ended, and another claim has been granted since
          4        forgotten: the server has no record of the grant
]]
local from, to, token, leaseMs = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local holder = redis.call('GET', KEYS[1])
if holder == from or holder == to then
  local last = redis.call('GET', KEYS[2])
  if not last or last - token == 0 then
    local restMs = redis.call('PTTL', KEYS[1])
    if restMs - leaseMs < 0 then
      restMs = leaseMs
    end
    redis.call('SET', KEYS[1], to, 'PX', restMs)
    redis.call('SET', KEYS[2], token, 'PX', restMs + 600000)
    redis.call('DEL', KEYS[3])
    return 1
  end
end

-- include why-lost
return whyLost(holder, token)
