--[[
  lua/permits: take back permits, and keep their keys alive.

  Each function writes its changes immediately, so that the state is consistent after every step.

  Needs lua/permits-state. Uses KEYS[1] state, KEYS[2] fence, KEYS[3] holders, KEYS[4] slots.
]]
-- Clients whose last grant expired unconfirmed, for lua/permits-grant.
local gone = {}

local function keptMs()
  return math.floor((keepUntil - now) / 1000)
end

-- If the expiry must be extended, extends it by 5 minutes more than needed, so that most calls do not have to write it.
local function lengthen(leaseMs)
  local needed = now + math.max(keepMs, leaseMs + 60000) * 1000
  if keepUntil < needed then
    keepUntil = needed + 300000000
    local ms = keptMs()
    redis.call('HSET', KEYS[1], 'until', keepUntil)
    redis.call('PEXPIRE', KEYS[1], ms)
    redis.call('PEXPIRE', KEYS[2], ms)
    redis.call('PEXPIRE', KEYS[3], ms)
    redis.call('PEXPIRE', KEYS[4], ms)
  end
end

-- Writes all fields and the placeholder `-`, so that the sizes of KEYS[1] and KEYS[3] show the number of holders.
local function begin(size, declared)
  redis.call('DEL', KEYS[1], KEYS[3], KEYS[4])
  capacity, used, top, free, first, keepUntil, record = tonumber(size), 0, 0, 0, 0, 0, false
  redis.call('HSET', KEYS[1], 'capacity', size, 'declared', declared, 'keepMs', keepMs,
    'used', 0, 'top', 0, 'free', 0, 'first', 0)
  redis.call('ZADD', KEYS[3], 'inf', '-')
  lengthen(0)
end

-- Never shortens a lease. If KEYS[3] was deleted or evicted, `first` = 0 makes the next call repair it.
local function keepLease(holder, ends)
  if redis.call('ZADD', KEYS[3], 'GT', 'inf', '-', ends, holder) == 2 then
    redis.call('PEXPIRE', KEYS[3], keptMs())
    redis.call('HSET', KEYS[1], 'first', 0)
  end
end

-- Holders whose lease end was lost get one more lease from now. Live holders renew it, and dead ones do not.
local function mend()
  if redis.call('HLEN', KEYS[1]) - 8 > redis.call('ZCARD', KEYS[3]) - 1 then
    local fields = redis.call('HGETALL', KEYS[1])
    for i = 1, #fields, 2 do
      local leaseMs = string.match(fields[i], '^[^/]+/%d+/(%d+)/')
      if leaseMs and not redis.call('ZSCORE', KEYS[3], fields[i]) then
        keepLease(fields[i], now + leaseMs * 1000)
      end
    end
  end
end

local function putBack(slots)
  if used == 0 then
    -- Without holders the slot numbers start at 0 again, so the free ones need not be kept.
    if free > 0 then
      redis.call('DEL', KEYS[4])
    end
    top, free = 0, 0
  elseif slots ~= '' then
    local before = free
    for slot in string.gmatch(slots, '%d+') do
      if top - slot == 1 then
        top = top - 1
      else
        redis.call('ZADD', KEYS[4], slot, slot)
        free = free + 1
      end
    end
    if before == 0 and free > 0 then
      redis.call('PEXPIRE', KEYS[4], keptMs())
    end
  end
end

local function giveBack(holder, grant)
  local weight, slots = string.match(grant, '^(%d+)/%d+/([%d,]*)')
  used = used - weight
  redis.call('HDEL', KEYS[1], holder)
  redis.call('ZREM', KEYS[3], holder)
  if slots == '' and free == 0 then
    redis.call('HSET', KEYS[1], 'used', used)
  else
    putBack(slots)
    redis.call('HSET', KEYS[1], 'used', used, 'top', top, 'free', free)
  end
end

-- Removes the mark of an unconfirmed grant.
local function confirmed(grant)
  return (string.gsub(grant, '/!$', ''))
end

-- Takes back the permits of holders whose leases have ended by the server's clock.
local function reap()
  if used == 0 or first - now > 0 then
    return
  end
  mend()
  for _, holder in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now, 'LIMIT', 0, 1000)) do
    local grant = redis.call('HGET', KEYS[1], holder)
    if grant then
      giveBack(holder, grant)
      if string.find(grant, '/!', 1, true) then
        gone[#gone + 1] = string.match(holder, '^[^/]+')
      end
    else
      redis.call('ZREM', KEYS[3], holder)
    end
    if holder == owner then
      record = false
    end
  end
  local earliest = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')[2]
  if used > 0 and (not earliest or earliest == 'inf') then
    begin(capacity, state[2])
  elseif used > 0 then
    first = tonumber(earliest)
    redis.call('HSET', KEYS[1], 'first', earliest)
  end
end

-- Whether `token` belongs to this grant. A change of weight may have issued a newer token that the holder does not know
-- yet.
local function isUnder(grant, token)
  local last, first = string.match(grant, '^%d+/(%d+)/[%d,]*/?(%d*)')
  if first == '' then
    first = last
  end
  return last - token >= 0 and token - first >= 0
end
