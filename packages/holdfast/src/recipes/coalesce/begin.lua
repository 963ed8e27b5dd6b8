--[[
  recipes/coalesce/begin: the call that was granted begins, and so supersedes all that came before it.

  A step of its own, so that whoever was granted and gave up, or died before it heard, has superseded nobody. Sent again with the
  same token it changes nothing.

  KEYS[1] lock     string, owner of the claim that runs
  KEYS[2] fence    string, last token issued
  KEYS[3] waiting  sorted set, see recipes/coalesce/acquire
  KEYS[4] joining  sorted set, see there
  KEYS[5] run      hash, see there
  ARGV[1] owner    id of the claim
  ARGV[2] token    of its grant
  ARGV[3] ageUs    how long ago it should have arrived at the latest; 0 if its first request was answered in time, or if it would join
  ARGV[4] inbox    what a client id is appended to for the channel that the client listens on
  REPLY   {1, arrivalUs, coversUs, by...}  begun; when it counts as having arrived, until when those have who share what it finds,
                                           and who has asked it to end by now, if anybody has
          {2}                              lost: it is not granted any more, or should not have been: a later call has begun
]]
local owner, token, ageUs, inbox = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

if redis.call('GET', KEYS[1]) ~= owner or redis.call('GET', KEYS[2]) ~= token then
  return {2}
end
-- include tell
local run = redis.call('HMGET', KEYS[5], 'begun', 'at', 'arrival', 'cancel', 'by', 'covers')
local arrival, covers = run[3], run[6]
if run[1] ~= token then
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  local before = run[3] or '0'
  local at = tonumber(run[2] or now)
  -- A copy of its request may have come late, and say nothing of that.
  if ageUs ~= '0' then
    at = math.min(at, now - ageUs)
    if at - before < 0 then
      return {2}
    end
  end
  arrival = string.format('%.0f', math.max(at, tonumber(before)))
  local joining = redis.call('ZREVRANGE', KEYS[4], 0, 0, 'WITHSCORES')[2] or 0
  covers = string.format('%.0f', math.max(now, tonumber(joining)))
  redis.call('HSET', KEYS[5], 'begun', token, 'by', owner, 'arrival', arrival, 'covers', covers, 'before', before, 'beforeBy', run[5] or '')
  redis.call('PEXPIRE', KEYS[5], redis.call('PTTL', KEYS[1]) + 600000)
  for _, waiter in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], 0, arrival, 'LIMIT', 0, 10000)) do
    local client, number = string.match(waiter, '^([^/]+)/(%d+)/')
    -- They take themselves away when they have asked; who cannot hear is gone.
    if not client or not tell(inbox .. client, '~' .. number) then
      redis.call('ZREM', KEYS[3], waiter)
    end
  end
end
local reply = {1, tonumber(arrival), tonumber(covers)}
if run[4] then
  reply[4] = run[4]
end
return reply
