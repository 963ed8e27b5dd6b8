--[[
  lua/permits-grant: grant permits to waiting claims, first come, first served.

  Every script that can free permits uses this, so that only one place decides which claim is next. The rules:
  - The head of the queue is never overtaken. While it does not fit, no claim behind it is granted, however small.
  - All heads that fit are granted in the same call, so a writer that leaves lets in all readers up to the next
    writer.
  - A head whose process is gone is dropped even if it does not fit, because it would hold up all claims behind it.
  - A head that wants more than the capacity is notified. When it asks again, the reply says why.
  - During a pause nothing is granted and the queue stays as it is.
  - One call handles at most 10,000 claims. The next call handles the others.

  Needs lua/notify and lua/permits, KEYS[6] pause, the local `inbox`, and the local `numbered`: the largest weight that
  gets slot numbers.
]]
local lastToken
-- Whether permits were held when this call began. pausing/pause-permits sets it to true, so that the fence is raised.
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

-- `handOffMs` is how long an unconfirmed grant by message lasts, as in lua/hand-off. It is nil for any other grant.
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

-- Like lua/lose-places: a client that did not confirm a grant would not confirm its next grants either.
local function losePlaces()
  local left = #gone > 0 and 1000 or 0
  for _, waiter in ipairs(left > 0 and redis.call('ZRANGE', KEYS[5], 0, 9999) or {}) do
    local client, number = string.match(waiter, '^([^/]+)/(%d+)/%d+/%d+')
    for _, one in ipairs(gone) do
      if client == one and left > 0 then
        redis.call('ZREM', KEYS[5], waiter)
        notify(inbox .. client, '~' .. number)
        left = left - 1
        break
      end
    end
  end
  gone = {}
end

-- `self` is the caller's own claim, which gets a reply, not a message. Returns its token and slots if it was granted.
local function grantHeads(self)
  losePlaces()
  -- EXISTS counts a repeated key twice, so a result above 1 means that there is a pause.
  local found = used < capacity and redis.call('EXISTS', KEYS[5], KEYS[6], KEYS[6]) or 0
  if found > 1 and used == 0 and wasHeld then
    -- The permits became free during a pause. Raise the fence as a grant does, so that late requests of an
    -- earlier holder are refused.
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
        notify(inbox .. client, '~' .. number)
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
        elseif notify(inbox .. client, message) then
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
