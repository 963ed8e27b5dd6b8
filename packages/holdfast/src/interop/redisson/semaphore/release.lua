--[[
  interop/redisson/semaphore/release: give permits back, if they are ours, and tell those who wait.

  Comparing and giving back are one step, so that permits which were taken back already are not given a second time. A
  semaphore that was deleted is not made again: what it had is not the next one's.

  KEYS[1] permits  string, how many are free
  KEYS[2] leases   sorted set, owner -> end of its lease in ms
  KEYS[3] grants   hash, owner -> <permits>/<token>
  ARGV[1] owner    id of the claim
  ARGV[2] token    of its grant; empty if any will do
  ARGV[3] channel  where waiters listen
  ARGV[4] how      plain, sharded or both
  REPLY   1        released
          2        claimed: they were not its own any more, or never
          3        forgotten: the semaphore is gone
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
-- Less than one permit is no reason to wake anybody, and Java fails on a message below zero.
if count + permits > 0 then
  publish(how, channel, count + permits)
end
redis.call('ZREM', KEYS[2], owner)
redis.call('HDEL', KEYS[3], owner)
redis.call('INCRBY', KEYS[1], permits)
return 1
