--[[
  lua/coalesce-next: grant a coalesced call to the newest caller that is still subscribed.

  Grants the run to the newest caller in KEYS[3] that arrived after the last call that began. The caller of that last
  call also counts, because it may have lost its grant before it learned that its call had begun. If there is no such
  caller, grants the run to the oldest caller in KEYS[4], and the others in KEYS[4] share its result. A caller whose
  inbox has no subscriber is removed. The others keep their places, because a granted call may never begin; in that
  case, they are next.

  Needs lua/notify. Uses KEYS[1] lock, KEYS[2] fence, KEYS[3] waiting, KEYS[4] joining, KEYS[5] run. `self` is the
  caller's own claim: it gets a reply, not a message. Returns the granted claim and its token, or nil if no caller is
  left.
]]
local function handOff(inbox, now, self)
  local last = redis.call('GET', KEYS[2])
  local token = now
  if last and last - now >= 0 then
    token = last + 1
  end
  local began = redis.call('HGET', KEYS[5], 'arrival') or 0
  for _ = 1, 10000 do
    local one = redis.call('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')
    if not one[1] or one[2] - began < 0 then
      one = redis.call('ZRANGE', KEYS[4], 0, 0, 'WITHSCORES')
    end
    local waiter, arrival = one[1], one[2]
    if not waiter then
      return
    end
    redis.call('ZREM', KEYS[3], waiter)
    redis.call('ZREM', KEYS[4], waiter)
    local client, number, leaseMs = string.match(waiter, '^([^/]+)/(%d+)/(%d+)/')
    if client and (waiter == self or notify(inbox .. client, string.format('+%s %.0f %.0f', number, token, now))) then
      redis.call('SET', KEYS[2], string.format('%.0f', token), 'PX', leaseMs + 600000)
      redis.call('SET', KEYS[1], waiter, 'PX', leaseMs)
      redis.call('HSET', KEYS[5], 'granted', waiter, 'at', arrival)
      redis.call('HDEL', KEYS[5], 'cancel')
      redis.call('PEXPIRE', KEYS[5], leaseMs + 600000)
      return waiter, token
    end
  end
end
