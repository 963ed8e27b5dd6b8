--[[
  lua/redisson-life: let what is recorded beside the count of a plain semaphore live as long as the count.

  Shorter, and the permits of a holder that dies would be lost; longer, and they would come back to a semaphore that they
  were not taken from. Somebody may have given the count a life of another length since. Of a count without an end nobody
  tells when it is deleted, so the record ends by itself, 100 days after the last lease that it knows of: until then
  somebody has to ask for permits once, or those of a holder that died stay taken.

  Needs leaseMs. Uses KEYS[1] permits, KEYS[2] leases, KEYS[3] grants.
]]
local livesMs = redis.call('PTTL', KEYS[1])
if livesMs <= 0 then
  livesMs = math.max(redis.call('PTTL', KEYS[2]), leaseMs + 8640000000)
end
livesMs = string.format('%.0f', livesMs)
redis.call('PEXPIRE', KEYS[2], livesMs)
redis.call('PEXPIRE', KEYS[3], livesMs)
