--[[
  lua/lose-places: remove all claims of a client from the queue, if its last grant expired unconfirmed.

  Only for a script that has found no holder. A holder deletes KEYS[4] when it confirms or releases. So if the lock is
  free while KEYS[4] exists, its last holder never replied: that process is frozen, dead or unreachable. Each of its
  other claims would delay the next waiters in the same way. Each removed claim gets a message, so that a client that
  is alive queues again. One call examines at most 10,000 waiters and removes at most 1,000.

  Needs lua/notify. Uses KEYS[3] queue, KEYS[4] handed. Returns whether there was such a client.
]]
local function losePlaces(inbox)
  local gone = redis.call('GET', KEYS[4])
  if not gone then
    return false
  end
  redis.call('DEL', KEYS[4])
  local left = 1000
  for _, waiter in ipairs(redis.call('ZRANGE', KEYS[3], 0, 9999)) do
    local client, number = string.match(waiter, '^([^/]+)/(%d+)/%d+/%d+')
    if client == gone and left > 0 then
      redis.call('ZREM', KEYS[3], waiter)
      notify(inbox .. client, '~' .. number)
      left = left - 1
    end
  end
  return true
end
