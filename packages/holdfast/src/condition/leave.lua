--[[
  condition/leave: stop waiting for a signal; and if it was given already, pass it on.

  A waiter that gives up cannot know whether its signal, or even its grant, is on the way, so all is undone in one
  step. If its wait has not begun, as when the request is late or lost, the mutex is given back here.

  KEYS[1] lock       string, owner of the claim that holds; expires with its lease
  KEYS[2] fence      string, last token issued
  KEYS[3] queue      sorted set, owner of a claim that waits for the mutex -> arrival number
  KEYS[4] handed     string, client that was granted by message and has not confirmed
  KEYS[5] pause      string, the pause that keeps everybody from being granted; expires at its end
  KEYS[6] condition  sorted set, owner of a claim that waits for a signal -> arrival number
  ARGV[1] from       id of the claim that held the mutex before the wait
  ARGV[2] token      token of its grant
  ARGV[3] owner      id of the claim that gives up
  ARGV[4] entered    1 if it is certain that it has waited; 2 if its signal has done its work or was passed on; else 0
  ARGV[5] inbox      what a client id is appended to for the channel that the client listens on
  GRANTS  by hand-off
  REPLY   0          absent: it neither waited nor held, and nothing is to be passed on
          1          left: no signal had reached it
          2          passed: it was signalled, or may have been, and the next waiter is in its place
          3          released: its wait had not begun
]]
local from, token, owner, entered, inbox = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- include tell
-- include hand-off
-- include holds
-- include signal-next
local function pop()
  return redis.call('ZPOPMIN', KEYS[6])[1]
end
if redis.call('ZREM', KEYS[6], owner) == 1 then
  return 1
end

local isHolder = redis.call('GET', KEYS[1]) == owner
if isHolder or redis.call('ZREM', KEYS[3], owner) == 1 or entered == '1' then
  -- A claim in no queue was signalled, and dropped when it could not be reached at its turn.
  if entered ~= '2' then
    signalNext(inbox, 1, pop)
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
  -- Its wait ran unheard, and it was signalled and dropped since; or never began, and then a needless signal does no harm.
  signalNext(inbox, 1, pop)
  return 2
end
return 0
