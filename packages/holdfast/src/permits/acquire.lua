--[[
  permits/acquire: take permits if they are free and nobody waits for any; otherwise, if asked to, queue for them.

  One step, so that a permit is never given twice and nobody waits for permits that are free. Sent again with the
  same owner it gives the same answer: the first reply may have been lost. The capacity is what the first caller
  declared, until somebody resizes it. Who declares one that never was is refused, because two processes that
  disagree would each be right in their own logs; one that was is taken for the present one, so that a resize does
  not turn away the processes that are there. What the caller sees as waiting ends when the head of the queue fits,
  or when a holder's lease ends and somebody asks.

  KEYS[1] state     hash: capacity, declared, used, top, free, first, until, keepMs; owner -> grant of each holder
  KEYS[2] fence     string, last token issued
  KEYS[3] holders   sorted set, owner of a holder -> end of its lease, in microseconds of the server's clock
  KEYS[4] slots     sorted set, free slot numbers below top
  KEYS[5] queue     sorted set, owner of a waiting claim -> arrival number
  KEYS[6] pause     string, the pause that keeps everybody from being granted; expires at its end
  ARGV[1] owner     id of this claim
  ARGV[2] leaseMs   length of the lease
  ARGV[3] weight    how many permits, 1 or more
  ARGV[4] enqueue   1 if the claim may wait in the queue, but not begin to while there is a pause; 2 if it may in any
                    case; 0 if its client has no inbox or does not wait
  ARGV[5] inbox     what a client id is appended to for the channel that the client listens on
  ARGV[6] declared  the capacity that this client was configured with
  ARGV[7] numbered  the heaviest grant whose permits are numbered; 0 for none
  GRANTS  by itself
  REPLY   token                  granted, without numbers
          {0, restMs, nowUs, pauses...}  waiting in the queue; the first lease of a holder ends in restMs, -1 if nobody
                                         holds; the text is the pause, if there is one, which ends in restMs where
                                         nobody holds
          {1, restMs, nowUs, pauses...}  refused, and not in the queue
          {2, token, slots...}   granted; slots is one text, the numbers with commas between
          {3, present}           mismatch: the present capacity is another one, and so was every one before
          {4, present}           heavy: more than the present capacity, so it can never be granted
]]
local owner, leaseMs, weight = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local enqueue, inbox, numbered = ARGV[4] ~= '0', ARGV[5], tonumber(ARGV[7])

-- include permits-state
local ends = now + leaseMs * 1000
-- What it nearly always is, without the machinery below, which costs more than the commands: the permits are free,
-- nobody waits, no lease is over, no numbers are to be filled in, and the keys live long enough.
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

-- include tell
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
  -- The first reply was lost. The lease is never shortened: this may be a late copy that arrives after an extension.
  lengthen(leaseMs)
  redis.call('HSET', KEYS[1], owner, confirmed(record))
  keepLease(owner, ends)
  local token, slots = string.match(record, '^%d+/(%d+)/([%d,]*)')
  return answer(token, slots)
end

-- A key that is named twice counts twice.
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
    -- Waiters ask again every few seconds; a queue that nobody asks about belongs to processes that are gone.
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
