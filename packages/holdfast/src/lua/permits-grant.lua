--[[
  lua/permits-grant: give permits to claims, in the order in which they came.

  The one place that decides who is next, for every script that can make room. The head of the queue is never
  overtaken: while it does not fit, nobody behind it is granted, however little they ask for. Everybody who fits
  is granted in the same call, so a writer that leaves lets all readers up to the next writer in at once. A head
  whose process is gone is dropped, whether or not it fits: else it would hold up all the others for as long as
  somebody holds. One that asks for more than there is by now is told to ask again, and gets the reason. While there
  is a pause, nobody is granted and the queue stays as it is. The bound keeps one call short; what it leaves is taken up by
  the next caller.

  Needs lua/tell and lua/permits, KEYS[6] pause, the local `inbox`, and the local `numbered`: the heaviest grant whose permits
  are numbered.
]]
local lastToken
-- Whether permits were held when this call began. Counted as held before they are paused, so that the fence moves then.
local wasHeld = tonumber(state[3] or 0) > 0

local function nextToken()
  if not lastToken then
    lastToken = tonumber(redis.call('GET', KEYS[2]) or 0)
  end
  return math.max(lastToken + 1, now)
end

local function takeSlots(weight)
  if weight > numbered then
    return ''
  end
  local slots = {}
  if free > 0 then
    local popped = redis.call('ZPOPMIN', KEYS[4], math.min(free, weight))
    for i = 1, #popped, 2 do
      slots[#slots + 1] = popped[i]
    end
    free = math.max(0, free - weight)
  end
  while #slots < weight do
    slots[#slots + 1] = string.format('%.0f', top)
    top = top + 1
  end
  return table.concat(slots, ',')
end

-- `handOffMs` is how long a grant by message lasts until it is confirmed, as in lua/hand-off; nothing for any other grant.
local function grantTo(holder, weight, leaseMs, token, slots, handOffMs)
  local ends = now + (handOffMs or leaseMs) * 1000
  if used == 0 or ends < first then
    first = ends
    redis.call('HSET', KEYS[1], 'first', first)
  end
  used = used + weight
  lastToken = token
  local grant = string.format('%.0f/%.0f/', weight, token) .. slots .. (handOffMs and '/!' or '')
  if slots == '' then
    redis.call('HSET', KEYS[1], holder, grant, 'used', used)
  else
    redis.call('HSET', KEYS[1], holder, grant, 'used', used, 'top', top, 'free', free)
  end
  lengthen(leaseMs)
  keepLease(holder, ends)
end

-- As lua/lose-places: what the client of an unconfirmed grant waits for besides would be lost as well.
local function losePlaces()
  local left = #gone > 0 and 1000 or 0
  for _, waiter in ipairs(left > 0 and redis.call('ZRANGE', KEYS[5], 0, 9999) or {}) do
    local client, number = string.match(waiter, '^([^/]+)/(%d+)/%d+/%d+')
    for _, one in ipairs(gone) do
      if client == one and left > 0 then
        redis.call('ZREM', KEYS[5], waiter)
        tell(inbox .. client, '~' .. number)
        left = left - 1
        break
      end
    end
  end
  gone = {}
end

-- `self` is the caller's own claim, which needs no message. Returns its token and slots if it was granted.
local function grantHeads(self)
  losePlaces()
  -- A key that is named twice counts twice.
  local found = used < capacity and redis.call('EXISTS', KEYS[5], KEYS[6], KEYS[6]) or 0
  if found > 1 and used == 0 and wasHeld then
    -- Free under a pause: an earlier holder that comes late is refused as after a grant.
    redis.call('SET', KEYS[2], nextToken(), 'PX', keptMs())
  end
  if found ~= 1 then
    return
  end
  local selfToken, selfSlots
  local last, left = 0, 10000
  while used < capacity and left > 0 do
    local heads = redis.call('ZRANGE', KEYS[5], 0, last)
    if #heads == 0 then
      return selfToken, selfSlots
    end
    last = 99
    for _, head in ipairs(heads) do
      if used >= capacity then
        return selfToken, selfSlots
      end
      local client, number, leaseMs, weight = string.match(head, '^([^/]+)/(%d+)/(%d+)/(%d+)')
      weight = tonumber(weight or 0)
      local fits = used + weight <= capacity
      if client and weight <= capacity and not fits and (head == self or isThere(inbox .. client, number)) then
        return selfToken, selfSlots
      end
      left = left - 1
      redis.call('ZREM', KEYS[5], head)
      if client and weight > capacity then
        tell(inbox .. client, '~' .. number)
      elseif client and fits then
        local token, slots = nextToken(), takeSlots(weight)
        local message = string.format('+%s %.0f %.0f', number, token, now)
        if slots ~= '' then
          message = message .. ' ' .. slots
        end
        if head == self then
          selfToken, selfSlots = token, slots
          grantTo(head, weight, leaseMs, token, slots)
          redis.call('SET', KEYS[2], token, 'PX', keptMs())
        elseif tell(inbox .. client, message) then
          grantTo(head, weight, leaseMs, token, slots, string.match(head, ';(%d+)$'))
          redis.call('SET', KEYS[2], token, 'PX', keptMs())
        elseif slots ~= '' then
          putBack(slots)
          redis.call('HSET', KEYS[1], 'top', top, 'free', free)
        end
      end
    end
  end
  return selfToken, selfSlots
end
