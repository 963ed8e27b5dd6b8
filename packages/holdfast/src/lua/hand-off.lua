--[[
  lua/hand-off: grant the mutex to the first waiter that is still subscribed.

  Every script that can end a hold uses this, so that only one place decides which waiter is next. A waiter whose
  inbox has no subscriber is dropped, and the next one is tried. During a pause nothing is granted and the queue stays
  as it is. One call tries at most 10,000 waiters. The next call tries the others.

  Unless the new holder confirms it with mutex/extend, a grant by message lasts only for `handOffMs`, which is stored at
  the end of the waiter's id. The reason is that a frozen process or a dead connection still counts as subscribed.
  Until the confirmation, KEYS[4] stores the client, so that lua/lose-places can recognize a lease that was never
  confirmed. A waiter of protocol 0 has no `handOffMs` and gets its full lease. So does the caller itself, because it
  gets the grant in the reply.

  Needs lua/notify. Uses KEYS[1] lock, KEYS[2] fence, KEYS[3] queue, KEYS[4] handed, KEYS[5] pause. `self` is the
  caller's own claim, which gets a reply, not a message. `now` is the time if the script has already read it, else
  nil. Returns the granted claim and its first token, or nil if nothing was granted.
]]
-- Call this if the lock is free during a pause, which lasts for another `restMs`. Raises the fence as a grant does, so
-- that an earlier holder is refused if it is late, or if it reclaims its lease after a failover. The fence outlives the
-- pause by 10 minutes, but lasts for one day and 10 minutes at most.
local function moveFence(restMs, now)
  if not now then
    local time = redis.call('TIME')
    now = time[1] * 1000000 + time[2]
  end
  local last = redis.call('GET', KEYS[2]) or 0
  redis.call('SET', KEYS[2], math.max(last + 1, now), 'PX', math.min(restMs, 86400000) + 600000)
end

local function handOff(inbox, self, now)
  local pausedMs = redis.call('PTTL', KEYS[5])
  if pausedMs ~= -2 then
    -- Do this write first. The server accepts it even when out of memory, and then accepts all later writes of this
    -- script (docs/adr/135).
    redis.call('ZREM', KEYS[3], '')
    moveFence(pausedMs, now)
    return
  end
  local first
  for _ = 1, 10000 do
    local waiter = redis.call('ZPOPMIN', KEYS[3])[1]
    if not waiter then
      return
    end
    if not first then
      if not now then
        local time = redis.call('TIME')
        now = time[1] * 1000000 + time[2]
      end
      local last = redis.call('GET', KEYS[2])
      first = now
      if last and last - now >= 0 then
        first = last + 1
      end
    end
    local client, number, leaseMs, block = string.match(waiter, '^([^/]+)/(%d+)/(%d+)/(%d+)')
    local isGranted = client and waiter == self
    if client and not isGranted then
      isGranted = notify(inbox .. client, string.format('+%s %.0f %.0f', number, first, now))
    end
    if isGranted then
      local handOffMs = waiter ~= self and string.match(waiter, ';(%d+)$')
      -- If the lease is invalid, this SET fails before the fence is written, so the fence still matches the holder.
      redis.call('SET', KEYS[1], waiter, 'PX', handOffMs or leaseMs)
      redis.call('SET', KEYS[2], first + block - 1, 'PX', leaseMs + 600000)
      if handOffMs then
        redis.call('SET', KEYS[4], client, 'PX', leaseMs + 60000)
      else
        redis.call('DEL', KEYS[4])
      end
      return waiter, first
    end
  end
end
