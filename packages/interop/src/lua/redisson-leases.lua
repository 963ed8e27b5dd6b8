--[[
  lua/redisson-leases: take back the permits of Holdfast's own holders whose leases have ended.

  The count of a plain semaphore names no holders. Only those that acquired with Holdfast can be found, in the records
  beside it. One call takes back at most 100 leases. The next call takes the others.

  Needs `count`, `now`, `publish`, `how`, `channel`. Uses KEYS[1] permits, KEYS[2] leases, KEYS[3] grants. Returns
  whether some may be left.
]]
local function takeBack()
  local lapsed = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 100)
  local permits = 0
  for _, holder in ipairs(lapsed) do
    permits = permits + (string.match(redis.call('HGET', KEYS[3], holder) or '', '^%d+') or 0)
  end
  if permits > 0 then
    count = count + permits
    if count > 0 then
      publish(how, channel, count)
    end
    redis.call('INCRBY', KEYS[1], permits)
  end
  for _, holder in ipairs(lapsed) do
    redis.call('ZREM', KEYS[2], holder)
    redis.call('HDEL', KEYS[3], holder)
  end
  return #lapsed == 100
end
