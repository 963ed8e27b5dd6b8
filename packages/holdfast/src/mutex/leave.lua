--[[
  mutex/leave: stop waiting; if the mutex was granted in the meantime, pass it on.

  A waiter that gives up cannot know whether its grant is already on the way, so one atomic step undoes the wait or the
  grant.

  KEYS[1] lock    string, owner id of the holder; expires with its lease
  KEYS[2] fence   string, last token issued
  KEYS[3] queue   sorted set, owner of a waiting claim -> arrival number
  KEYS[4] handed  string, client whose grant by message is not confirmed yet
  KEYS[5] pause   string, the current pause, during which nothing is granted; expires at its end
  ARGV[1] owner   id of the claim that stops waiting
  ARGV[2] inbox   prefix of inbox channels; a client's channel is the prefix plus the client id
  GRANTS  by hand-off
  REPLY   0      absent: the claim neither waited nor held the mutex
          1      left the queue
          2      released the grant that was made in the meantime
]]
local owner, inbox = ARGV[1], ARGV[2]

-- include notify
-- include hand-off
if redis.call('GET', KEYS[1]) == owner then
  if not handOff(inbox) then
    redis.call('DEL', KEYS[1], KEYS[4])
  end
  return 2
end
return redis.call('ZREM', KEYS[3], owner)
