--[[
  interop/redisson/semaphore/drain: take all permits that are free, for good.

  Nobody holds them afterwards; whoever wants them back puts as many in.

  KEYS[1] permits  string, how many are free
  KEYS[2] request  string, the answer to this request if it was carried out before
  KEYS[3] timeout  what a semaphore whose permits expire has, and this one must not
  ARGV[1] name     the first key as it must arrive here
  ARGV[2] keepMs   how long the answer is remembered
  REPLY   {0, value}  done: how many were free
          2           expirable: permits of this name expire
          3           strange: the key holds no count
          4           prefixed: a client has put something before the key
]]
local name, keepMs = ARGV[1], ARGV[2]

-- include redisson-count
-- include redisson-once
if redis.call('EXISTS', KEYS[3]) == 1 then
  return 2
end
if count ~= 0 then
  redis.call('INCRBY', KEYS[1], -count)
end
return answer(count)
