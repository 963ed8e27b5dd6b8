--[[
  lua/break-generation: break the current generation of a barrier, and notify all parties that have arrived.

  Each arrival is recorded as broken, so that a party that asks later, or asks again, learns this no matter what has
  happened since. A score is the generation plus a fraction. The fraction 0.5 means broken, a smaller one means passed,
  and a larger one means that the arrival was withdrawn before it reached the server.

  Uses KEYS[1] barrier, KEYS[2] arrived, KEYS[3] leases, KEYS[4] ended.
]]
local function breakGeneration(inbox, generation, why, by)
  redis.call('HSET', KEYS[1], 'broken', string.format('%.0f', generation), 'why', why, 'by', by)
  redis.call('PEXPIRE', KEYS[1], 86400000)
  -- The loop is bounded, because the set has at most one entry per party.
  for _, party in ipairs(redis.call('ZRANGE', KEYS[2], 0, -1)) do
    redis.call('ZADD', KEYS[4], generation + 0.5, party)
    local client, number = string.match(party, '^([^/]+)/(%d+)/%d+/%d+')
    redis.pcall('PUBLISH', inbox .. client, '~' .. number)
  end
  redis.call('PEXPIRE', KEYS[4], 86400000)
  redis.call('DEL', KEYS[2], KEYS[3])
end
