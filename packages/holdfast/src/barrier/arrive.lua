--[[
  barrier/arrive: arrive at the barrier, or confirm that the party is still waiting; the last arrival releases all.

  This is one atomic step, so that each party is in exactly one generation, and a generation either passes for all or
  breaks for all. A repeated request from the same party gets the same reply while the outcome of its arrival is on
  record. At least the last 10,000 outcomes are kept. An arrival has a lease. If a request finds an expired lease, the
  generation breaks.

  KEYS[1] barrier  hash: parties, generation; broken, why and by of the generation that broke last; resetBy
  KEYS[2] arrived  sorted set, owner of an arrival of this generation -> its index
  KEYS[3] leases   sorted set, owner of an arrival of this generation -> end of its lease, in µs of the server's clock
  KEYS[4] ended    sorted set, owner of an earlier arrival -> generation + index / 131072, or + 0.5 if the generation
                   broke, or + 0.75 if the arrival was withdrawn before it reached the server, or was refused
  ARGV[1] owner    id of this arrival
  ARGV[2] leaseMs  length of its lease
  ARGV[3] parties  number of parties that the caller was configured with
  ARGV[4] enqueue  1 if the party may wait; 0 if it may arrive only as the last party; 2 is the same as 0, from a caller
                   that asks only once
  ARGV[5] inbox    prefix of inbox channels; a client's channel is the prefix plus the client id
  REPLY   {0, restMs, nowUs}              waiting: ask again within restMs
          {1, restMs, nowUs}              refused: the party is not the last and must not wait, or it withdrew earlier
          {2, generation, index}          passed: all have arrived
          {3, generation, why, parties...}  broken: why is 1 lease ended, 2 timed out, 3 aborted, 4 left, 5 reset;
                                          parties is the party that broke it
          {4, parties}                    mismatch: the barrier was set up for this number of parties
]]
local owner, leaseMs, parties, enqueue, inbox = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

local barrier = redis.call('HMGET', KEYS[1], 'parties', 'generation', 'broken', 'why', 'by')
local generation = tonumber(barrier[2] or 1)
local function broken(which)
  if tonumber(barrier[3] or 0) ~= which then
    return {3, which, 5}
  end
  return {3, which, tonumber(barrier[4]), barrier[5]}
end

local ended = tonumber(redis.call('ZSCORE', KEYS[4], owner) or 0)
if ended > 0 then
  local which = math.floor(ended)
  if ended - which == 0.5 then
    return broken(which)
  end
  if ended - which > 0.5 then
    -- The party withdrew, or was refused, before this request arrived. Its generation may pass without it.
    local time = redis.call('TIME')
    return {1, -1, time[1] * 1000000 + time[2]}
  end
  return {2, which, math.floor((ended - which) * 131072 + 0.5)}
end
if barrier[1] and barrier[1] ~= parties then
  return {4, tonumber(barrier[1])}
end
-- Keep the records of ended arrivals for as long as a late copy of a request can reach the server.
local function trimEnds()
  redis.call('PEXPIRE', KEYS[4], 86400000)
  local excess = redis.call('ZCARD', KEYS[4]) - parties - 10000
  if excess > 0 then
    redis.call('ZPOPMIN', KEYS[4], excess)
  end
end
-- Also makes a record for a party that never arrived, so that a delayed copy of its request cannot count as an arrival.
local function keepEnd(fraction)
  redis.call('ZADD', KEYS[4], generation + fraction, owner)
  trimEnds()
end
if tonumber(barrier[3] or 0) == generation then
  keepEnd(0.5)
  return broken(generation)
end

-- include break-generation
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local dead = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now, 'LIMIT', 0, 1)[1]
if dead then
  breakGeneration(inbox, generation, 1, dead)
  keepEnd(0.5)
  return {3, generation, 1, dead}
end

local count = redis.call('ZCARD', KEYS[2])
if not redis.call('ZSCORE', KEYS[2], owner) then
  if enqueue ~= '1' and count + 1 < tonumber(parties) then
    if enqueue == '2' then
      keepEnd(0.75)
    end
    return {1, -1, now}
  end
  redis.call('ZADD', KEYS[2], count, owner)
  count = count + 1
end
redis.call('HSET', KEYS[1], 'parties', parties, 'generation', string.format('%.0f', generation))
redis.call('PEXPIRE', KEYS[1], 86400000)

if count < tonumber(parties) then
  redis.call('ZADD', KEYS[3], now + leaseMs * 1000, owner)
  redis.call('PEXPIRE', KEYS[2], 86400000)
  redis.call('PEXPIRE', KEYS[3], 86400000)
  local first = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')[2]
  return {0, math.floor(math.min(leaseMs / 3, (first - now) / 1000)), now}
end

local own
for index, party in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  redis.call('ZADD', KEYS[4], generation + (index - 1) / 131072, party)
  if party == owner then
    own = index - 1
  else
    local client, number = string.match(party, '^([^/]+)/(%d+)/%d+/%d+')
    redis.pcall('PUBLISH', inbox .. client, string.format('+%s %.0f %.0f %.0f', number, generation, now, index - 1))
  end
end
trimEnds()
redis.call('HSET', KEYS[1], 'generation', string.format('%.0f', generation + 1))
redis.call('DEL', KEYS[2], KEYS[3])
return {2, generation, own}
