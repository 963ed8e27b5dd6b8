--[[
  lua/redisson-reap: take back the permits whose leases have ended, of all holders.

  Removes them by score, so that no list of ids is built, and at most about 1,000 per call. The next call takes the
  others.

  Needs `count`, `now`, `publish`, `how`, `channel`. Uses KEYS[1] permits, KEYS[2] timeout. Returns whether some are
  left.
]]
local function reap()
  local last = redis.call('ZRANGEBYSCORE', KEYS[2], 0, now, 'WITHSCORES', 'LIMIT', 999, 1)[2]
  local lapsed = redis.call('ZCOUNT', KEYS[2], 0, last or now)
  if lapsed == 0 then
    return false
  end
  count = count + lapsed
  if count > 0 then
    publish(how, channel, count)
  end
  redis.call('ZREMRANGEBYSCORE', KEYS[2], 0, last or now)
  redis.call('INCRBY', KEYS[1], lapsed)
  return last ~= nil and redis.call('ZCOUNT', KEYS[2], 0, now) > 0
end
