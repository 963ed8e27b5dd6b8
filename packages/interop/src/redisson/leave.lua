--[[
  interop/redisson/leave: stop waiting, and release the lock if it was granted in the meantime.

  KEYS[1] lock     hash, owner -> hold count; expires with the lease
  ARGV[1] owner    id of the claim that gives up
  ARGV[2] channel  channel of the waiters
  ARGV[3] how      plain, sharded or both
  REPLY   0        absent: the claim did not hold the lock
          1        released: the claim had been granted
]]
local owner, channel, how = ARGV[1], ARGV[2], ARGV[3]

-- include redisson-publish
-- include redisson-field
if has(owner) ~= 1 then
  return 0
end
publish(how, channel, '0')
redis.call('DEL', KEYS[1])
return 1
