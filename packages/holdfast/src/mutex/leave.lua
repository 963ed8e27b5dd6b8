--[[
  mutex/leave: stop waiting; and if the grant was made meanwhile, pass it on.

  A waiter that gives up cannot know whether its grant is already on the way, so both are undone in one step.

  KEYS[1] lock    string, owner of the claim that holds; expires with its lease
  KEYS[2] fence   string, last token issued
  KEYS[3] queue   sorted set, owner of a waiting claim -> arrival number
  KEYS[4] handed  string, client that was granted by message and has not confirmed
  KEYS[5] pause   string, the pause that keeps everybody from being granted; expires at its end
  ARGV[1] owner   id of the claim that gives up
  ARGV[2] inbox   what a client id is appended to for the channel that the client listens on
  GRANTS  by hand-off
  REPLY   0      absent: it neither waited nor held
          1      left the queue
          2      released what had been granted
]]
local owner, inbox = ARGV[1], ARGV[2]

-- include tell
-- include hand-off
if redis.call('GET', KEYS[1]) == owner then
  if not handOff(inbox) then
    redis.call('DEL', KEYS[1], KEYS[4])
  end
  return 2
end
return redis.call('ZREM', KEYS[3], owner)
