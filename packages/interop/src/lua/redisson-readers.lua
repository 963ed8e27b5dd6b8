--[[
  lua/redisson-readers: end the read holds of one owner, and keep the lock as long as others need it.

  Each read hold has its own key, which expires with its lease. The common hash lives as long as the longest of them.
  A reader that leaves sets this expiry for the readers of all clients. KEYS[1] is the hash. The keys of the holds are
  derived from its fields, so they cannot be declared, but they are in its slot.

  Returns whether other holders are left.
]]
local function holdOf(holdBase, owner, n)
  return holdBase .. ':' .. owner .. ':rwlock_timeout:' .. string.format('%.0f', n)
end

local function longestOthersMs(holdBase, owner)
  local longestMs = 0
  local fields = redis.call('HGETALL', KEYS[1])
  for i = 1, #fields, 2 do
    local count = fields[i] ~= owner and tonumber(fields[i + 1]) or 0
    for n = 1, count do
      longestMs = math.max(longestMs, redis.call('PTTL', holdOf(holdBase, fields[i], n)))
    end
  end
  return longestMs
end

local function endReads(holdBase, owner, channel, how)
  local longestMs = longestOthersMs(holdBase, owner)
  local isWritten = redis.call('HGET', KEYS[1], 'mode') == 'write'
  local isNeeded = longestMs > 0 or (isWritten and redis.call('HLEN', KEYS[1]) > 2)
  if not isNeeded then
    publish(how, channel, '0')
  end
  for n = 1, tonumber(redis.call('HGET', KEYS[1], owner)) do
    redis.call('DEL', holdOf(holdBase, owner, n))
  end
  redis.call('HDEL', KEYS[1], owner)
  if not isNeeded then
    redis.call('DEL', KEYS[1])
  elseif longestMs > 0 then
    redis.call('PEXPIRE', KEYS[1], longestMs)
  end
  return isNeeded
end
