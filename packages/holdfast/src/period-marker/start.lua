--[[
  period-marker/start: whether a run may start in its period, and if so the note that it has.

  One step, under the grant of the lock: "is it still mine" and "was there a run" are answered at one moment, so that of all who
  hold the lock in turn one starts in each period. What is compared is when each of them had read the server's clock, before
  any of them waited. Sent again with the same grant it gives the same answer.

  KEYS[1] lock     string, owner of the claim that holds; of permits the state
  KEYS[2] holders  of permits: sorted set, owner -> end of its lease, in microseconds of the server's clock; else the lock again
  KEYS[3] marker   hash of the last run: owner, token, host, pid, name, label, read, started, ended, code; ok, which is the
                   read of the last one that succeeded
  ARGV[1] owner    id of the claim that holds
  ARGV[2] token    of its grant
  ARGV[3] permits  1 if the lock hands out permits
  ARGV[4] readMs   when this one had read the clock, in ms since 1970
  ARGV[5] periodMs length of the period
  ARGV[6] shiftMs  of a calendar period: what is added to a time before it is divided; -1 for a period that rolls
  ARGV[7] needsOk  1 if only a run counts that succeeded
  ARGV[8] write    1 to note it; 0 to look only
  ARGV[9] keepMs   how long the note is kept
  ARGV[10] host    where the run is
  ARGV[11] pid     process id there
  ARGV[12] name    clientName option there, or empty
  ARGV[13] label   what it is for, or empty
  REPLY   {0}            started: and noted, if that was asked for
          {1, texts...}  already: the last run, as the fields of the marker from owner to code, and then the one that counts
          {2}            lost: the lock is not held by that claim
]]
local owner, token, permits, readMs = ARGV[1], ARGV[2], ARGV[3] == '1', tonumber(ARGV[4])
local periodMs, shiftMs, needsOk, write, keepMs = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7] == '1', ARGV[8], ARGV[9]
local host, pid, name, label = ARGV[10], ARGV[11], ARGV[12], ARGV[13]

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if permits then
  local ends = redis.call('ZSCORE', KEYS[2], owner)
  if not ends or ends - now <= 0 then
    return {2}
  end
elseif redis.call('GET', KEYS[1]) ~= owner then
  return {2}
end

local last = redis.call('HMGET', KEYS[3], 'owner', 'token', 'host', 'pid', 'name', 'label', 'read', 'started', 'ended',
  'code', 'ok')
if last[1] == owner and last[2] == token then
  return {0}
end
local counts = tonumber(needsOk and last[11] or not needsOk and last[7] or '')
if counts then
  local isOver
  if shiftMs < 0 then
    -- A tenth earlier than the period: who starts once a day, a second sooner than yesterday, is not to skip a day.
    isOver = readMs - counts >= periodMs * 0.9
  else
    isOver = math.floor((readMs + shiftMs) / periodMs) > math.floor((counts + shiftMs) / periodMs)
  end
  if not isOver then
    local reply = {1}
    for n = 1, 10 do
      reply[n + 1] = last[n] or ''
    end
    reply[#reply + 1] = string.format('%.0f', counts)
    return reply
  end
end
if write == '1' then
  redis.call('HSET', KEYS[3], 'owner', owner, 'token', token, 'host', host, 'pid', pid, 'name', name, 'label', label,
    'read', string.format('%.0f', readMs), 'started', string.format('%.0f', math.floor(now / 1000)))
  redis.call('HDEL', KEYS[3], 'ended', 'code')
  if redis.call('PTTL', KEYS[3]) - keepMs < 0 then
    redis.call('PEXPIRE', KEYS[3], keepMs)
  end
end
return {0}
