--[[
  barrier/reset: begin a new generation with a given number of parties; break the current one if any party is waiting.

  A repeated request changes nothing.

  KEYS[1] barrier    hash: parties, generation; broken, why and by of the generation that broke last; resetBy
  KEYS[2] arrived    sorted set, owner of an arrival of this generation -> its index
  KEYS[3] leases     sorted set, owner of an arrival of this generation -> end of its lease, in µs of the server's clock
  KEYS[4] ended      sorted set, owner of an earlier arrival -> generation + index / 131072, or + 0.5 if the generation
                     broke, or + 0.75 if the arrival was withdrawn before it reached the server, or was refused; id of
                     a reset -> the generation that it began
  ARGV[1] request    id of this request
  ARGV[2] parties    number of parties of the new generation
  ARGV[3] inbox      prefix of inbox channels; a client's channel is the prefix plus the client id
  REPLY   generation reset: the new generation
]]
local request, parties, inbox = ARGV[1], ARGV[2], ARGV[3]

local barrier = redis.call('HMGET', KEYS[1], 'generation', 'resetBy')
local generation = tonumber(barrier[1] or 1)
if barrier[2] == request or redis.call('ZSCORE', KEYS[4], request) then
  return generation
end

-- include break-generation
if redis.call('EXISTS', KEYS[2]) == 1 then
  breakGeneration(inbox, generation, 5, '')
end
generation = generation + 1
redis.call('HSET', KEYS[1], 'generation', string.format('%.0f', generation), 'parties', parties, 'resetBy', request)
redis.call('PEXPIRE', KEYS[1], 86400000)
redis.call('ZADD', KEYS[4], generation, request)
redis.call('PEXPIRE', KEYS[4], 86400000)
return generation
