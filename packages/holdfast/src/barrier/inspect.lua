--[[
  barrier/inspect: the current generation, and which parties have arrived or which one broke it. Changes nothing.

  KEYS[1] barrier  hash: parties, generation; broken, why and by of the generation that broke last; resetBy
  KEYS[2] arrived  sorted set, owner of an arrival of this generation -> its index
  REPLY   {0, parties, generation, owners...}       gathering: owners have arrived; parties is 0 before the first use
          {1, parties, generation, why, owners...}  broken: why as in barrier/arrive; owners is the party that broke it,
                                                    or empty if none did
]]
local barrier = redis.call('HMGET', KEYS[1], 'parties', 'generation', 'broken', 'why', 'by')
local generation = tonumber(barrier[2] or 1)
if tonumber(barrier[3] or 0) == generation then
  return {1, tonumber(barrier[1] or 0), generation, tonumber(barrier[4]), barrier[5]}
end
local reply = {0, tonumber(barrier[1] or 0), generation}
for _, party in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
  reply[#reply + 1] = party
end
return reply
