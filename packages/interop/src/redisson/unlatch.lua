--[[
  interop/redisson/unlatch: delete the latch of a release after its reply has arrived.

  KEYS[1] latch  string, result of the request
  REPLY   1      forgotten
]]
redis.call('DEL', KEYS[1])
return 1
