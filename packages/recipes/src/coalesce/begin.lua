--[[
  recipes/coalesce/begin: begin the call that was granted, and supersede all calls that arrived before it.

  This is a separate step after the grant, so that a claim that gives up or crashes before it learns of its grant
  supersedes no other call. A retry with the same token changes nothing.

  KEYS[1] lock     string, owner of the claim that runs
  KEYS[2] fence    string, last token issued
  KEYS[3] waiting  sorted set, see recipes/coalesce/acquire
  KEYS[4] joining  sorted set, see recipes/coalesce/acquire
  KEYS[5] run      hash, see recipes/coalesce/acquire
  ARGV[1] owner    id of the claim
  ARGV[2] token    token of its grant
  ARGV[3] ageUs    minimum time since the call would have arrived if no request had been lost, in microseconds; 0 if its
                   first request got a reply, or for mode "join"
  ARGV[4] inbox    prefix of inbox channels; a client id is appended to get the channel of that client
  REPLY   {1, arrivalUs, coversUs, by...}  begun: its arrival; the latest arrival that its run covers; the owner of the
                                           claim that has already asked it to end, if any
          {2}                              lost: the claim is no longer granted, or a later call has begun
]]
local owner, token, ageUs, inbox = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

if redis.call('GET', KEYS[1]) ~= owner or redis.call('GET', KEYS[2]) ~= token then
  return {2}
end
-- include notify
local run = redis.call('HMGET', KEYS[5], 'begun', 'at', 'arrival', 'cancel', 'by', 'covers')
local arrival, covers = run[3], run[6]
if run[1] ~= token then
  local time = redis.call('TIME')
  local now = time[1] * 1000000 + time[2]
  local before = run[3] or '0'
  local at = tonumber(run[2] or now)
  -- A late copy of the acquire request may have recorded an arrival that is too late.
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
    -- A notified waiter asks again and then removes itself. A waiter without a subscriber is gone, so it is removed
    -- here.
    if not client or not notify(inbox .. client, '~' .. number) then
      redis.call('ZREM', KEYS[3], waiter)
    end
  end
end
local reply = {1, tonumber(arrival), tonumber(covers)}
if run[4] then
  reply[4] = run[4]
end
return reply
