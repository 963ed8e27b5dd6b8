--[[
  interop/redisson/unlatch: forget what a release did, once its answer has come.

  KEYS[1] latch  string, what the request did
  REPLY   1      forgotten
]]
redis.call('DEL', KEYS[1])
return 1
