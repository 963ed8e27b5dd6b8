--[[
  multi-lock/acquire: take several mutexes if each is free and has no waiters; otherwise take none.

  Because this is one atomic step, no other client sees only some of the mutexes taken, and two callers that name them
  in opposite orders cannot deadlock. Each mutex gets its own claim, as if it were acquired alone, and is then extended
  and released with the scripts of a mutex. A repeated request with the same owners gets the same reply.

  The number of mutexes differs between calls, so this script computes the n of KEYS[n]. If a proxy rejects such a
  script, the mutexes are acquired one after the other, which is slower.

  ARGV[1]   leaseMs  length of each lease
  ARGV[2]   owners   ids of the claims, one for each mutex, separated by spaces, which no id contains
  ARGV[3]   inbox    prefix of inbox channels; a client's channel is the prefix plus the client id
  KEYS[...] keys     for each mutex: lock, fence, queue, handed and pause, as in mutex/acquire
  GRANTS  by itself
  REPLY     {0, member, restMs, nowUs}  refused: mutex number `member`, from 1, is held or paused, or has waiters;
                                        its lease ends in restMs; -1 if never, -2 if it is not held
            {1, tokens...}              granted: one token for each mutex
]]
local leaseMs, inbox = ARGV[1], ARGV[3]

local owners, isOurs = {}, {}
for owner in string.gmatch(ARGV[2], '%S+') do
  local member = #owners + 1
  local holder = redis.call('GET', KEYS[5 * member - 4])
  local isTaken = holder and holder ~= owner
  if isTaken or (not holder and redis.call('EXISTS', KEYS[5 * member - 2], KEYS[5 * member]) > 0) then
    if holder then
      -- include recall
    end
    local time = redis.call('TIME')
    return {0, member, redis.call('PTTL', KEYS[5 * member - 4]), time[1] * 1000000 + time[2]}
  end
  owners[member] = owner
  isOurs[member] = holder == owner
end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local reply = {1}
for member, owner in ipairs(owners) do
  local last = tonumber(redis.call('GET', KEYS[5 * member - 3]) or 0)
  local token = now
  if isOurs[member] and last > 0 then
    -- The first reply was lost. Nothing has been granted since, so the last token is ours.
    token = last
  elseif last >= now then
    token = last + 1
  end
  -- Do not shorten a lease that is ours, because this request may be a late copy that arrives after an extension.
  if redis.call('PTTL', KEYS[5 * member - 4]) - leaseMs < 0 then
    redis.call('SET', KEYS[5 * member - 4], owner, 'PX', leaseMs)
  end
  if token ~= last or redis.call('PTTL', KEYS[5 * member - 3]) - leaseMs - 600000 < 0 then
    redis.call('SET', KEYS[5 * member - 3], token, 'PX', leaseMs + 600000)
  end
  redis.call('DEL', KEYS[5 * member - 1])
  reply[member + 1] = token
end
return reply
