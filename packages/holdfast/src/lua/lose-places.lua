--[[
  lua/lose-places: take the places of a client out of the queue whose last grant ended without confirmation.

  Only for a script that has found no holder. Whoever holds deletes KEYS[4] when it confirms or releases, so a lock that is
  free while KEYS[4] stands belonged to a process that never answered: it is frozen, dead or deaf. Its other claims
  would cost the next waiters as much each. Every claim is told, so that a client that is alive after all queues again.
  The bounds keep one call short.

  Needs lua/tell. Uses KEYS[3] queue, KEYS[4] handed. Returns whether there was such a client.
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
      tell(inbox .. client, '~' .. number)
      left = left - 1
    end
  end
  return true
end
