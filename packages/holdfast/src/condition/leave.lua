--[[
  condition/leave: stop waiting for a signal; if the signal was already given, pass it on.

  A waiter that gives up cannot know whether its signal, or even its grant, is on the way, so one atomic step undoes the
  wait, the signal and the grant. If the wait has not begun because its request is late or lost, the mutex is released.

  KEYS[1] lock       string, owner id of the holder; expires with its lease
  KEYS[2] fence      string, last token issued
  KEYS[3] queue      sorted set, owner of a claim that waits for the mutex -> arrival number
  KEYS[4] handed     string, client whose grant by message is not confirmed yet
  KEYS[5] pause      string, the current pause, during which nothing is granted; expires at its end
  KEYS[6] condition  sorted set, owner of a claim that waits for a signal -> arrival number
  ARGV[1] from       id of the claim that held the mutex before the wait
  ARGV[2] token      token of its grant
  ARGV[3] owner      id of the claim that stops waiting
  ARGV[4] entered    1 if the claim is known to have waited; 2 if its signal was used or passed on; otherwise 0
  ARGV[5] inbox      prefix of inbox channels; a client's channel is the prefix plus the client id
  GRANTS  by hand-off
  REPLY   0          absent: the claim neither waited nor held the mutex, and there is no signal to pass on
          1          left: no signal had reached it
          2          passed: it was signaled, or may have been, and the signal was passed to the next waiter
          3          released: its wait had not begun
]]
local from, token, owner, entered, inbox = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- include notify
-- include hand-off
-- include holds
-- include signal-next
local function passSignal()
  local moved = signalNext(inbox, 1, function()
    return redis.call('ZPOPMIN', KEYS[6])[1]
  end)
  local holder = moved > 0 and redis.call('GET', KEYS[1])
  if holder then
    -- include recall
  end
end
if redis.call('ZREM', KEYS[6], owner) == 1 then
  return 1
end

local isHolder = redis.call('GET', KEYS[1]) == owner
if isHolder or redis.call('ZREM', KEYS[3], owner) == 1 or entered == '1' then
  -- If the claim waited but is in no queue, it was signaled, and then dropped because its inbox had no subscriber.
  if entered ~= '2' then
    passSignal()
  end
  if isHolder and not handOff(inbox) then
    redis.call('DEL', KEYS[1], KEYS[4])
  end
  return 2
end

if holds(from, token) then
  if not handOff(inbox) then
    redis.call('DEL', KEYS[1], KEYS[4])
  end
  return 3
end

if entered == '0' then
  -- The claim may have waited, and then been signaled and dropped, while its reply was lost. If instead the wait never
  -- began, an unnecessary signal does no harm.
  passSignal()
  return 2
end
return 0
