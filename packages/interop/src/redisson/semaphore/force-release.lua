--[[
  interop/redisson/semaphore/force-release: release the permits of a given Holdfast holder, and notify waiters.

  The caller names the holder by its owner, or by the token of its grant. A token requires a search of all holders.

  KEYS[1] permits  string, number of free permits
  KEYS[2] leases   sorted set, owner -> end of its lease in ms
  KEYS[3] grants   hash, owner -> <permits>/<token>
  ARGV[1] name     the first key, without any prefix that a client adds
  ARGV[2] owner    owner of the permits; empty to identify the holder by its token only
  ARGV[3] token    token of the grant; empty to identify the holder by its owner only
  ARGV[4] channel  channel of the waiters
  ARGV[5] how      plain, sharded or both
  REPLY   0        absent: there is no such holder
          1        released
          3        strange: the value of the key is not a count
          4        prefixed: the client added a prefix to the key
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
-- Without a free permit there is nothing to announce, and Java fails on a negative message.
if count + permits > 0 then
  publish(how, channel, count + permits)
end
redis.call('ZREM', KEYS[2], owner)
redis.call('HDEL', KEYS[3], owner)
redis.call('INCRBY', KEYS[1], permits)
return 1
