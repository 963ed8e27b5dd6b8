--[[
  lua/redisson-fair: the queue of a FairLock without those at its head whose time is over.

  KEYS[2] is the queue and KEYS[3] the deadlines, in every script of the fair lock. Only the head is looked at, as Redisson
  does: the deadlines behind it are counted from those before. A head without a deadline would stay for ever and is
  removed as well; if it is alive, it queues again by itself. What is left over after a thousand is for the next call.

  Returns the head and its deadline in ms since 1970, or nothing.
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
