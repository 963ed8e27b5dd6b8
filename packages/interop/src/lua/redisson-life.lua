--[[
  lua/redisson-life: keep the records beside the count of a plain semaphore exactly as long as the count.

  If they expired earlier, the permits of a holder that crashes would be lost. If they expired later, the permits
  would be returned to a semaphore that they were not taken from. The expiry of the count may have been changed since.
  A count without expiry gives no notice when it is deleted, so its records expire 100 days after the last known
  lease. If no client requests permits until then, the permits of crashed holders stay taken.

  Needs leaseMs. Uses KEYS[1] permits, KEYS[2] leases, KEYS[3] grants.
]]
local livesMs = redis.call('PTTL', KEYS[1])
if livesMs <= 0 then
  livesMs = math.max(redis.call('PTTL', KEYS[2]), leaseMs + 8640000000)
end
livesMs = string.format('%.0f', livesMs)
redis.call('PEXPIRE', KEYS[2], livesMs)
redis.call('PEXPIRE', KEYS[3], livesMs)
