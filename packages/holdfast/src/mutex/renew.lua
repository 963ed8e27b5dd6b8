--[[
  mutex/renew: renew the leases of many mutexes, each as in mutex/extend.

  For a process with thousands of leases, one request per lease would cost the process far more than the server. Each
  lease is extended or refused independently of the others. mutex/extend then reports why a lease was refused.

  ARGV[1]   leases  for each mutex: id of the claim that was granted, last token of its block, and length of the lease,
                    counted from now; separated by spaces, which no id contains
  KEYS[...] keys    for each mutex: lock and fence, as in mutex/extend
  REPLY     {1, refused...}  renewed: all except the refused ones, which are numbered from 1
]]
local reply = {1}
local place = 0
for owner, token, leaseMs in string.gmatch(ARGV[1], '(%S+) (%S+) (%S+)') do
  place = place + 1
  -- For a key of another type, `pcall` returns a table. This lease is then refused, and the others are still renewed.
  local last = redis.pcall('GET', KEYS[2 * place])
  local isLater = type(last) == 'table' or (last and last - token ~= 0)
  if redis.pcall('GET', KEYS[2 * place - 1]) ~= owner or isLater then
    reply[#reply + 1] = place
  else
    local restMs = redis.call('PTTL', KEYS[2 * place - 1])
    if restMs - leaseMs < 0 then
      redis.call('PEXPIRE', KEYS[2 * place - 1], leaseMs)
      restMs = leaseMs
    else
      -- A server that is out of memory accepts this first write, and then the others (docs/adr/135).
      redis.call('PEXPIRE', KEYS[2 * place], restMs + 600000)
    end
    redis.call('SET', KEYS[2 * place], token, 'PX', restMs + 600000)
  end
end
return reply
