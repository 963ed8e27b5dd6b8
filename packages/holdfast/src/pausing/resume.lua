--[[
  pausing/resume: end the pause of a mutex, and grant the mutex to the first waiter.

  A repeated request gets the same reply, and a copy that arrives after the next pause has begun does nothing.

  KEYS[1] lock     string, owner id of the holder; expires with its lease
  KEYS[2] fence    string, last token issued
  KEYS[3] queue    sorted set, owner of a waiting claim -> arrival number
  KEYS[4] handed   string, client whose grant by message is not confirmed yet
  KEYS[5] pause    string, the current pause, during which nothing is granted; expires at its end
  KEYS[6] resumed  string, `<resume request> <waiters> <now in ms> <pause>` of the last pause that `resume` ended
  ARGV[1] request  id of this request
  ARGV[2] inbox    prefix of inbox channels; a client's channel is the prefix plus the client id
  ARGV[3] only     the pause to end; empty for the current one, whichever it is
  GRANTS  by hand-off
  REPLY   {0}                             running: there is no pause
          {1, nowMs, waiters, texts...}  resumed: waiters is the number of waiters, texts the pause that ended
          {2, nowMs, texts...}           other: texts is the current pause, which differs from `only` and continues
]]
local request, inbox, only = ARGV[1], ARGV[2], ARGV[3]

local doneBy, doneWaiters, doneMs, done = string.match(redis.call('GET', KEYS[6]) or '', '^(%S+) (%d+) (%d+) (%S+)$')
if doneBy == request then
  return {1, tonumber(doneMs), tonumber(doneWaiters), done}
end

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local nowMs = math.floor(now / 1000)
local pause = redis.call('GET', KEYS[5])
if not pause then
  return {0}
end
if only ~= '' and only ~= pause then
  return {2, nowMs, pause}
end
-- include notify
-- include hand-off
redis.call('DEL', KEYS[5])
local waiters = redis.call('ZCARD', KEYS[3])
redis.call('SET', KEYS[6], request .. string.format(' %.0f %.0f ', waiters, nowMs) .. pause, 'PX', 600000)
if not redis.call('GET', KEYS[1]) and not handOff(inbox, nil, now) then
  -- The pause has extended the lifetime of the fence key. Shorten it to the regular value.
  redis.call('PEXPIRE', KEYS[2], 600000)
end
return {1, nowMs, waiters, pause}
