--[[
  permits/acquire: take permits if enough are free and no claim is waiting; otherwise, if requested, join the queue.

  This is one atomic step, so that no permit is granted twice and no claim waits for permits that are already free. A
  repeated request with the same owner gets the same reply, because the first reply may have been lost. The capacity is
  the one that the first caller declared, until `resize` changes it. A caller that declares a capacity that was never in
  effect is refused, so that a wrong configuration in one process is noticed. A caller may also declare a former
  capacity, so that a resize does not lock out running processes. A waiting claim is granted once it is at the head of
  the queue and fits. After a holder's lease ends, the next request frees the holder's permits and grants them to
  waiters.

  KEYS[1] state     hash: capacity, declared, used, top, free, first, until, keepMs; owner -> grant of each holder
  KEYS[2] fence     string, last token issued
  KEYS[3] holders   sorted set, owner of a holder -> end of its lease, in microseconds of the server's clock
  KEYS[4] slots     sorted set, free slot numbers below top
  KEYS[5] queue     sorted set, owner of a waiting claim -> arrival number
  KEYS[6] pause     string, the current pause, during which nothing is granted; expires at its end
  ARGV[1] owner     id of this claim
  ARGV[2] leaseMs   length of the lease
  ARGV[3] weight    number of permits, 1 or more
  ARGV[4] enqueue   1 if the claim may join the queue, but not during a pause; 2 if it may join even during a pause;
                    0 if its client has no inbox or does not wait
  ARGV[5] inbox     prefix of inbox channels: the channel of a client is this plus its client id
  ARGV[6] declared  the capacity that this client was configured with
  ARGV[7] numbered  grants up to this weight get slot numbers; 0 for none
  GRANTS  by itself
  REPLY   token                  granted, without slot numbers
          {0, restMs, nowUs, pauses...}  waiting in the queue; restMs is the time until the first lease ends, or until
                                         the pause ends if there is no holder, or -1 if there is neither; pauses is
                                         the current pause, if there is one
          {1, restMs, nowUs, pauses...}  refused, and not in the queue
          {2, token, slots...}   granted; slots is one string: the slot numbers, separated by commas
          {3, present}           mismatch: the declared capacity was never in effect; present is the current one
          {4, present}           heavy: the weight is higher than present, the current capacity
]]
local owner, leaseMs, weight = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local enqueue, inbox, numbered = ARGV[4] ~= '0', ARGV[5], tonumber(ARGV[7])

-- include permits-state
local ends = now + leaseMs * 1000
-- Handles the common case before the functions below are defined, because defining them costs more than running the
-- commands. In this case, the permits are free, no claim is waiting, no lease has ended, there are no gaps in the slot
-- numbers, and no key needs a later expiry.
if not record and used + weight <= capacity and (used == 0 or first - now > 0) and free == 0
  and (weight <= 10 or weight > numbered) and ARGV[6] - capacity == 0
  and keepUntil - ends >= 60000000 and keepUntil - now >= keepMs * 1000
  and redis.call('EXISTS', KEYS[5], KEYS[6]) == 0 then
  local token, ms = now, math.floor((keepUntil - now) / 1000)
  local last = redis.call('SET', KEYS[2], now, 'PX', ms, 'GET')
  if last and last - now >= 0 then
    token = last + 1
    redis.call('SET', KEYS[2], token, 'PX', ms)
  end
  local slots = ''
  if weight <= numbered then
    slots = string.format('%.0f', top)
    for slot = top + 1, top + weight - 1 do
      slots = slots .. string.format(',%.0f', slot)
    end
  end
  local grant = string.format('%.0f/%.0f/', weight, token) .. slots
  if used > 0 and first <= ends then
    redis.call('HSET', KEYS[1], owner, grant, 'used', used + weight)
  else
    redis.call('HSET', KEYS[1], owner, grant, 'used', used + weight, 'first', ends)
  end
  if redis.call('ZADD', KEYS[3], 'GT', 'inf', '-', ends, owner) == 2 then
    redis.call('PEXPIRE', KEYS[3], ms)
    redis.call('HSET', KEYS[1], 'first', 0)
  end
  if slots == '' then
    return token
  end
  redis.call('HSET', KEYS[1], 'top', top + weight)
  return {2, token, slots}
end

-- include notify
-- include permits
-- include permits-grant
local function answer(token, slots)
  if slots == '' then
    return tonumber(token)
  end
  return {2, tonumber(token), slots}
end

if capacity == 0 then
  begin(ARGV[6], ',' .. ARGV[6] .. ',')
elseif ARGV[6] - capacity ~= 0 and not string.find(state[2], ',' .. ARGV[6] .. ',', 1, true) then
  return {3, capacity}
end
reap()
losePlaces()

if record then
  -- The first reply was lost, or this is a late copy of the request. Do not shorten the lease, because it may have been
  -- extended before the copy arrived.
  lengthen(leaseMs)
  redis.call('HSET', KEYS[1], owner, confirmed(record))
  keepLease(owner, ends)
  local token, slots = string.match(record, '^%d+/(%d+)/([%d,]*)')
  return answer(token, slots)
end

-- EXISTS counts a repeated key twice, so a result above 1 means that there is a pause.
local found = redis.call('EXISTS', KEYS[5], KEYS[6], KEYS[6])
if weight > capacity then
  if found > 0 then
    redis.call('ZREM', KEYS[5], owner)
    grantHeads()
  end
  return {4, capacity}
end
if found == 0 and used + weight <= capacity then
  lengthen(leaseMs)
  local token = now
  local last = redis.call('SET', KEYS[2], now, 'PX', keptMs(), 'GET')
  if last and last - now >= 0 then
    token = last + 1
    redis.call('SET', KEYS[2], token, 'PX', keptMs())
  end
  local slots = takeSlots(weight)
  grantTo(owner, weight, leaseMs, token, slots)
  return answer(token, slots)
end

local pause = found > 1 and redis.call('GET', KEYS[6]) or nil
if enqueue or (used < capacity and found > 0) then
  local isQueued = redis.call('ZSCORE', KEYS[5], owner)
  if pause and ARGV[4] ~= '2' and not isQueued then
    enqueue = false
  else
    if not isQueued then
      local latest = redis.call('ZREVRANGE', KEYS[5], 0, 0, 'WITHSCORES')[2] or 0
      redis.call('ZADD', KEYS[5], math.max(latest + 1, now), owner)
    end
    -- Waiters ask again every few seconds. If none does for 60 s, their processes are gone, so the queue may expire.
    redis.call('PEXPIRE', KEYS[5], 60000)
  end
  local token, slots = grantHeads(owner)
  if token then
    return answer(token, slots)
  end
  if not enqueue then
    redis.call('ZREM', KEYS[5], owner)
  end
end

local restMs = pause and redis.call('PTTL', KEYS[6]) or -1
local earliest = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')[2]
if earliest and earliest ~= 'inf' then
  restMs = math.ceil((earliest - now) / 1000)
end
return {enqueue and 0 or 1, restMs, now, pause}
