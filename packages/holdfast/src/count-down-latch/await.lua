--[[
  count-down-latch/await: continue if the count is zero or not set; otherwise, if requested, wait for a message.

  A waiter names the generation that it is waiting for, which it learned from an earlier reply. Once that generation is
  over, the waiter continues, even if a new count has been set by then. Waiting extends the expiry of the keys, so that
  no count expires while a process is waiting for it.

  KEYS[1] latch    hash: count, initial, generation, setBy
  KEYS[2] counted  sorted set, caller that counted -> generation; request -> time of its execution
  KEYS[3] waiters  sorted set, owner of a waiting claim -> arrival number
  ARGV[1] owner    id of this claim
  ARGV[2] since    generation that the claim is waiting for; 0 if not known yet
  ARGV[3] enqueue  1 if the claim waits for a message; 0 if its client has no inbox or does not wait
  ARGV[4] keepMs   minimum lifetime of the keys from now
  REPLY   {0, generation, nowUs}  waiting
          {1, generation, nowUs}  refused: the count is not zero, and the claim does not wait
          {2}                     granted: the count is zero or not set
]]
local owner, since, enqueue, keepMs = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local latch = redis.call('HMGET', KEYS[1], 'count', 'generation')
local generation = latch[2]
if not latch[1] or latch[1] == '0' or (since ~= '0' and since - generation ~= 0) then
  redis.call('ZREM', KEYS[3], owner)
  return {2}
end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
-- Waiters ask again every few seconds and must still find the count, even if `keepMs` is short.
local waitedMs = math.max(tonumber(keepMs), 60000)
if redis.call('PTTL', KEYS[1]) - waitedMs < 0 then
  redis.call('PEXPIRE', KEYS[1], waitedMs)
  redis.call('PEXPIRE', KEYS[2], math.max(redis.call('PTTL', KEYS[2]), waitedMs))
end
if enqueue ~= '1' then
  return {1, tonumber(generation), now}
end
if not redis.call('ZSCORE', KEYS[3], owner) then
  local latest = redis.call('ZREVRANGE', KEYS[3], 0, 0, 'WITHSCORES')[2] or 0
  redis.call('ZADD', KEYS[3], math.max(latest + 1, now), owner)
end
-- Waiters ask again every few seconds. If none does for 60 s, their processes are gone, so the queue may expire.
redis.call('PEXPIRE', KEYS[3], 60000)
return {0, tonumber(generation), now}
