--[[
  lua/redisson-fair: remove the expired waiters from the head of the queue of a FairLock.

  KEYS[2] is the queue and KEYS[3] the deadlines, in every script of the fair lock. Like Redisson, this looks only at
  the head, because each deadline is computed from those before it. A head without a deadline would stay forever, so
  it is also removed; if it is alive, it queues again. One call removes at most 1,000. The next call removes the
  others.

  Returns the head and its deadline in ms since 1970, or nil if the queue is empty.
]]
local function headOfQueue(nowMs)
  for _ = 1, 1000 do
    local head = redis.call('LINDEX', KEYS[2], 0)
    if not head then
      return nil
    end
    local deadline = redis.call('ZSCORE', KEYS[3], head)
    if deadline and deadline - nowMs > 0 then
      return head, deadline
    end
    redis.call('ZREM', KEYS[3], head)
    redis.call('LPOP', KEYS[2])
  end
  return redis.call('LINDEX', KEYS[2], 0), nowMs
end
