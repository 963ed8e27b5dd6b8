--[[
  count-down-latch/leave: stop waiting.

  KEYS[1] waiters  sorted set, owner of a waiting claim -> arrival number
  ARGV[1] owner    id of the claim that stops waiting
  REPLY   0        absent: the claim was not waiting
          1        left
]]
return redis.call('ZREM', KEYS[1], ARGV[1])
