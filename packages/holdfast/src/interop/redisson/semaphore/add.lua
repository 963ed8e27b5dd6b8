--[[
  interop/redisson/semaphore/add: put permits in, or take some away, whoever had them.

  This is what a plain semaphore calls a release: nobody checks that the permits were ever held. INCRBY keeps the life
  of the count, which writing it anew would not.

  KEYS[1] permits      string, how many are free
  KEYS[2] request      string, the answer to this request if it was carried out before
  KEYS[3] timeout      what a semaphore whose permits expire has, and this one must not
  KEYS[4] leases       sorted set, what this library recorded of a semaphore that is gone
  KEYS[5] grants       hash, the same
  ARGV[1] name         the first key as it must arrive here
  ARGV[2] amount       how many, less than 0 to take some away
  ARGV[3] onlyIfThere  1 if a semaphore that does not exist is not to be made, else 0
  ARGV[4] keepMs       how long the answer is remembered
  ARGV[5] channel      where waiters listen
  ARGV[6] how          plain, sharded or both
  REPLY   {0, value}  done: 1, or 0 if there was nothing and nothing was made
          2           expirable: permits of this name expire
          3           strange: the key holds no count
          4           prefixed: a client has put something before the key
]]
local name, amount, onlyIfThere, keepMs = ARGV[1], ARGV[2], ARGV[3] == '1', ARGV[4]
local channel, how = ARGV[5], ARGV[6]

-- include redisson-count
-- include redisson-once
if redis.call('EXISTS', KEYS[3]) == 1 then
  return 2
end
if not text then
  redis.call('DEL', KEYS[4], KEYS[5])
  if onlyIfThere then
    return answer(0)
  end
end
-- include redisson-publish
-- Less than one permit is no reason to wake anybody, and Java fails on a message below zero.
if count + amount > 0 then
  publish(how, channel, count + amount)
end
redis.call('INCRBY', KEYS[1], amount)
return answer(1)
