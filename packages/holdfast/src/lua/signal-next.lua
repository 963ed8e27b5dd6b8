--[[
  lua/signal-next: move waiters from a condition to the end of the mutex's queue, first come, first served.

  A waiter whose inbox has no subscriber is dropped and the next one is tried, because a signal to a process that is
  gone would be lost. If such a waiter is alive, it finds out when it next asks, and continues with a spurious wake-up.
  One call tries at most 10,000 waiters. The reply says how many are left, and the client asks again.

  Needs lua/notify. Uses KEYS[3] queue. `pop` removes the first waiter from the condition. It is a parameter,
  because the key of the condition has a different index in each script. Returns how many were moved, at most `most`.
]]
local function signalNext(inbox, most, pop)
  local moved = 0
  for _ = 1, 10000 do
    local waiter = moved < most and pop()
    if not waiter then
      break
    end
    local client, number = string.match(waiter, '^([^/]+)/(%d+)/%d+/%d+')
    if client and notify(inbox .. client, '~' .. number) then
      local latest = redis.call('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')[2] or 0
      redis.call('ZADD', KEYS[3], latest + 1, waiter)
      moved = moved + 1
    end
  end
  if moved > 0 then
    redis.call('PEXPIRE', KEYS[3], 60000)
  end
  return moved
end
