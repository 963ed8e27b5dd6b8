--[[
  permits/leave: stop waiting; and if permits were granted meanwhile, pass them on.

  A waiter that gives up cannot know whether its grant is already on the way, so both are undone in one step. Who
  leaves from the head of the queue may have held up others that fit.

  KEYS[1] state     hash: capacity, declared, used, top, free, first, until, keepMs; owner -> grant of each holder
  KEYS[2] fence     string, last token issued
  KEYS[3] holders   sorted set, owner of a holder -> end of its lease, in microseconds of the server's clock
  KEYS[4] slots     sorted set, free slot numbers below top
  KEYS[5] queue     sorted set, owner of a waiting claim -> arrival number
  KEYS[6] pause     string, the pause that keeps everybody from being granted; expires at its end
  ARGV[1] owner     id of the claim that gives up
  ARGV[2] inbox     what a client id is appended to for the channel that the client listens on
  ARGV[3] numbered  the heaviest grant whose permits are numbered; 0 for none
  GRANTS  by hand-off
  REPLY   0         absent: it neither waited nor held
          1         left the queue
          2         released what had been granted
]]
local owner, inbox, numbered = ARGV[1], ARGV[2], tonumber(ARGV[3])

-- include tell
-- include permits-state
-- include permits
-- include permits-grant
-- A full server accepts this first write, and then the others (docs/adr/135).
redis.call('HDEL', KEYS[1], '')
reap()
local left = redis.call('ZREM', KEYS[5], owner)
if record then
  giveBack(owner, record)
  left = 2
end
grantHeads()
return left
