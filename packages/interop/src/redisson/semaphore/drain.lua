--[[
  interop/redisson/semaphore/drain: remove all free permits permanently.

  No lease holds them after that. To restore them, add the same number of permits.

  KEYS[1] permits  string, number of free permits
  KEYS[2] request  string, the reply to this request if it has already run
  KEYS[3] timeout  key of a semaphore with permits that expire; must not exist
  ARGV[1] name     the first key, without any prefix that a client adds
  ARGV[2] keepMs   how long the reply is remembered
  REPLY   {0, value}  done: number of permits that were free
          2           expirable: the name belongs to a semaphore with permits that expire
          3           strange: the value of the key is not a count
          4           prefixed: the client added a prefix to the key
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
