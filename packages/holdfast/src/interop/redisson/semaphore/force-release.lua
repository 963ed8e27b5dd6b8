--[[
  interop/redisson/semaphore/force-release: take permits away from a holder of ours that the caller names, and tell those who wait.

  By its owner, or by the token of its grant, for which all holders are looked through.

  KEYS[1] permits  string, how many are free
  KEYS[2] leases   sorted set, owner -> end of its lease in ms
  KEYS[3] grants   hash, owner -> <permits>/<token>
  ARGV[1] name     the first key as it must arrive here
  ARGV[2] owner    whose permits; empty to go by the token alone
  ARGV[3] token    of which grant; empty to go by the owner alone
  ARGV[4] channel  where waiters listen
  ARGV[5] how      plain, sharded or both
  REPLY   0        absent: nobody of that name has any
          1        released
          3        strange: the key holds no count
          4        prefixed: a client has put something before the key
]]
local name, owner, token, channel, how = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- include redisson-count
local function tokenOf(record)
  return string.match(record or '', '%d+$')
end

if owner == '' then
  local grants = redis.call('HGETALL', KEYS[3])
  for i = 1, #grants, 2 do
    if tokenOf(grants[i + 1]) == token then
      owner = grants[i]
    end
  end
end
local record = redis.call('HGET', KEYS[3], owner)
if not text or not record or (token ~= '' and tokenOf(record) ~= token) then
  return 0
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
