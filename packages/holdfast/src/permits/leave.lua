--[[
  permits/leave: stop waiting; if permits were granted in the meantime, pass them on.

  A waiter that gives up cannot know whether its grant is already on the way, so one atomic step undoes the wait or the
  grant. If the waiter was at the head of the queue, it may have blocked waiters that fit, so those are granted now.

  KEYS[1] state     hash: capacity, declared, used, top, free, first, until, keepMs; owner -> grant of each holder
  KEYS[2] fence     string, last token issued
  KEYS[3] holders   sorted set, owner of a holder -> end of its lease, in microseconds of the server's clock
  KEYS[4] slots     sorted set, free slot numbers below top
  KEYS[5] queue     sorted set, owner of a waiting claim -> arrival number
  KEYS[6] pause     string, the current pause, during which nothing is granted; expires at its end
  ARGV[1] owner     id of the claim that stops waiting
  ARGV[2] inbox     prefix of inbox channels: the channel of a client is this plus its client id
  ARGV[3] numbered  grants up to this weight get slot numbers; 0 for none
  GRANTS  by hand-off
  REPLY   0         absent: the claim neither waited nor held permits
          1         left the queue
          2         released the grant that was made in the meantime
]]
local owner, inbox, numbered = ARGV[1], ARGV[2], tonumber(ARGV[3])

-- include notify
-- include permits-state
-- include permits
-- include permits-grant
-- Do this write first. The server accepts it even when out of memory, and then accepts all later writes of this
-- script (docs/adr/135).
redis.call('HDEL', KEYS[1], '')
reap()
local left = redis.call('ZREM', KEYS[5], owner)
if record then
  giveBack(owner, record)
  left = 2
end
grantHeads()
return left
