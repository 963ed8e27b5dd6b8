--[[
  mutex/renew: renew the leases of many mutexes, each as in mutex/extend.

  With thousands of leases, one request per lease would be expensive, more so for the process than for the server. Each
  lease is extended or refused independently of the others. Only the usual case is handled here: the lock and the fence
  match the grant exactly, and the lease becomes longer. In any other case, the lease is refused and left unchanged, and
  the client then sends mutex/extend, which renews the lease or reports why it was lost (docs/adr/147).

  ARGV[1]   leases   for each mutex: id of the claim that was granted, last token of its block, and length of the lease,
                     counted from now; separated by spaces, which no id contains
  ARGV[2]   leaseMs  the longest of these lengths
  KEYS[...] keys     for each mutex: lock and fence, as in mutex/extend
  REPLY     {1, refused...}  renewed: all except the leases at the positions in refused, counted from 1
]]
local reply = {1}
local place = 0
local hasGt = true
-- Format the fence's lifetime only when leaseMs changes, because Lua converts computed numbers to text slowly.
local lengthMs = ARGV[2]
local fenceMs = string.format('%.0f', lengthMs + 600000)
for owner, token, leaseMs in string.gmatch(ARGV[1], '(%S+) (%S+) (%S+)') do
  place = place + 1
  local changed = 0
  -- For a key of another type, `pcall` returns a table. This lease is then refused, and the others are still renewed.
  if redis.pcall('GET', KEYS[2 * place - 1]) == owner and redis.pcall('GET', KEYS[2 * place]) == token then
    if hasGt then
      changed = redis.pcall('PEXPIRE', KEYS[2 * place - 1], leaseMs, 'GT')
      hasGt = type(changed) == 'number'
    end
    -- Redis 6.2 has no GT. If PEXPIRE failed for another reason, this call raises the error.
    if not hasGt then
      changed = redis.call('PTTL', KEYS[2 * place - 1]) - leaseMs < 0
        and redis.call('PEXPIRE', KEYS[2 * place - 1], leaseMs) or 0
    end
  end
  if changed == 1 then
    if leaseMs ~= lengthMs then
      lengthMs, fenceMs = leaseMs, string.format('%.0f', leaseMs + 600000)
    end
    redis.call('PEXPIRE', KEYS[2 * place], fenceMs)
  else
    reply[#reply + 1] = place
  end
end
return reply
