--[[
  interop/redisson/semaphore/release: release permits if the claim holds them, and notify waiters.

  Checks and releases in one step, so that permits that were already taken back are not added a second time. Does not
  create a deleted semaphore again, because its permits do not belong to the next one.

  KEYS[1] permits  string, number of free permits
  KEYS[2] leases   sorted set, owner -> end of its lease in ms
  KEYS[3] grants   hash, owner -> <permits>/<token>
  ARGV[1] owner    id of the claim
  ARGV[2] token    token of its grant; empty for any
  ARGV[3] channel  channel of the waiters
  ARGV[4] how      plain, sharded or both
  REPLY   1        released
          2        claimed: the claim no longer holds the permits, or never held them
          3        forgotten: the semaphore no longer exists
]]
local owner, token, channel, how = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local count = redis.call('GET', KEYS[1])
if not count then
  redis.call('DEL', KEYS[2], KEYS[3])
  return 3
end
local record = redis.call('HGET', KEYS[3], owner)
if not record or (token ~= '' and string.match(record, '%d+$') ~= token) then
  return 2
end
-- include redisson-publish
local permits = string.match(record, '^%d+')
-- Without a free permit there is nothing to announce, and Java fails on a negative message.
if count + permits > 0 then
  publish(how, channel, count + permits)
end
redis.call('ZREM', KEYS[2], owner)
redis.call('HDEL', KEYS[3], owner)
redis.call('INCRBY', KEYS[1], permits)
return 1
