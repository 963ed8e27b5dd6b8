--[[
  lua/hand-off: grant the mutex to the first waiter that is still there.

  Used by every script that can end a hold, so that "who is next" is decided in one place. A waiter whose inbox
  nobody listens to is dropped, and the next one is asked. While there is a pause, nobody is granted and the queue stays
  as it is. The bound keeps one call short however many dead stand in the queue; what it leaves is taken up by the next
  caller.

  A grant by message lasts only for the `handOffMs` at the end of the waiter's id, until the new holder confirms it with
  mutex/extend: the subscriber of a frozen process or a dead connection still counts as there. KEYS[4] remembers the
  client until then, so that lua/lose-places can tell a lease that nobody confirmed. A waiter of protocol 0 has no
  `handOffMs` and gets its full lease, and so does the caller itself, whom the reply reaches.

  Needs lua/tell. Uses KEYS[1] lock, KEYS[2] fence, KEYS[3] queue, KEYS[4] handed, KEYS[5] pause. `self` is the caller's own claim, which
  needs no message. `now` is the time, for a caller that has read it: a script reads it once.
  Returns the claim granted and its first token, or nothing when nobody is granted.
]]
-- The lock is free under a pause of `restMs` more. The fence moves as for a grant, so that an earlier holder which comes
-- late, or puts its lease back after a failover, is refused. It stays for ten minutes more than the pause, or than a day.
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
    -- A full server accepts this first write, and then the others (docs/adr/135).
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
      isGranted = tell(inbox .. client, string.format('+%s %.0f %.0f', number, first, now))
    end
    if isGranted then
      local handOffMs = waiter ~= self and string.match(waiter, ';(%d+)$')
      -- What is no lease fails here, and the fence still tells of the holder that there is.
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
