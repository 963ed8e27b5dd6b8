--[[
  lua/signal-next: move waiters from a condition to the end of the mutex's queue, the one that came first first.

  A waiter whose inbox nobody listens to is dropped, and the next one is asked: a signal to a process that is gone
  would be lost. If such a waiter is alive after all it finds itself in no queue when it asks, and goes on: that is
  a spurious wake-up. The bound keeps one call short; the caller is told what is left and asks again.

  Needs lua/tell. Uses KEYS[3] queue. `pop` takes the first waiter out of the condition, since its key has another place in
  each script. Returns how many were moved, `most` at the most.
]]
local function signalNext(inbox, most, pop)
  local moved = 0
  for _ = 1, 10000 do
    local waiter = moved < most and pop()
    if not waiter then
      break
    end
    local client, number = string.match(waiter, '^([^/]+)/(%d+)/%d+/%d+')
    if client and tell(inbox .. client, '~' .. number) then
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
