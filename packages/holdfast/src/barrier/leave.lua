--[[
  barrier/leave: withdraw an arrival, which breaks its generation for all others.

  If the generation has already passed or broken, nothing happens. If the arrival has not reached the server yet, it
  is recorded as withdrawn, so that it does not count if it arrives later, and the generation continues without it. A
  repeated request gets the same reply.

  KEYS[1] barrier  hash: parties, generation; broken, why and by of the generation that broke last; resetBy
  KEYS[2] arrived  sorted set, owner of an arrival of this generation -> its index
  KEYS[3] leases   sorted set, owner of an arrival of this generation -> end of its lease, in µs of the server's clock
  KEYS[4] ended    sorted set, owner of an earlier arrival -> generation + index / 131072, or + 0.5 if the generation
                   broke, or + 0.75 if the arrival was withdrawn before it reached the server, or was refused
  ARGV[1] owner    id of the arrival
  ARGV[2] why      2 timed out, 3 aborted, 4 left
  ARGV[3] inbox    prefix of inbox channels; a client's channel is the prefix plus the client id
  REPLY   {0}                     absent: the party had not arrived, and can no longer arrive
          {1}                     broke: the generation is broken, by this request or earlier
          {2, generation, index}  passed: all had arrived
]]
local owner, why, inbox = ARGV[1], ARGV[2], ARGV[3]

-- include break-generation
-- Do this write first. The server accepts it even when out of memory, and then accepts all later writes of this
-- script (docs/adr/135).
redis.call('ZREM', KEYS[2], '')
local generation = tonumber(redis.call('HGET', KEYS[1], 'generation') or 1)
if redis.call('ZSCORE', KEYS[2], owner) then
  breakGeneration(inbox, generation, why, owner)
  return {1}
end
local ended = tonumber(redis.call('ZSCORE', KEYS[4], owner) or 0)
if ended == 0 then
  redis.call('ZADD', KEYS[4], generation + 0.75, owner)
  redis.call('PEXPIRE', KEYS[4], 86400000)
  return {0}
end
local fraction = ended - math.floor(ended)
if fraction < 0.5 then
  return {2, math.floor(ended), math.floor(fraction * 131072 + 0.5)}
end
return {fraction == 0.5 and 1 or 0}
