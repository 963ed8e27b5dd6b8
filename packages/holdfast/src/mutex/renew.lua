--[[
  mutex/renew: begin the leases of many mutexes anew, each as mutex/extend does.

  For a process that holds thousands: one request for each lease costs it many times what the server needs for them.
  Each is extended or refused by itself, whatever becomes of the others; why one is refused is for mutex/extend to say.

  ARGV[1]   leases  of each mutex in turn: id of the claim that was granted, last token of its block, and length of the
                    lease, counted from now; all of them with a space between, and no id contains one
  KEYS[...] keys    of each mutex in turn: lock and fence, as in mutex/extend
  REPLY     {1, refused...}  renewed: all but those, counted from 1
]]
local reply = {1}
local place = 0
for owner, token, leaseMs in string.gmatch(ARGV[1], '(%S+) (%S+) (%S+)') do
  place = place + 1
  -- A key of another type is an error, which is a table, and no number: the others are renewed all the same.
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
      -- A full server accepts this first write, and then the others (docs/adr/135).
      redis.call('PEXPIRE', KEYS[2 * place], restMs + 600000)
    end
    redis.call('SET', KEYS[2 * place], token, 'PX', restMs + 600000)
  end
end
return reply
