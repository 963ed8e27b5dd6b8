--[[
  period-marker/start: check whether a run may start in its period; if so, record it.

  This is one atomic step, run while the lock is held. It checks the lock and the last run at the same moment, so that
  only one of the successive holders starts in each period. It compares the times at which this caller and the caller of
  the last run read the server's clock, before they waited for the lock. A repeated request with the same grant gets the
  same reply.

  KEYS[1] lock     string, owner id of the holder; for permits, the state
  KEYS[2] holders  for permits: sorted set, owner -> end of its lease, in µs of the server's clock; else the lock again
  KEYS[3] marker   hash of the last run: owner, token, host, pid, name, label, read, started, ended, code; and ok, the
                   `read` of the last run that succeeded
  ARGV[1] owner    id of the claim that holds the lock
  ARGV[2] token    token of its grant
  ARGV[3] permits  1 if the lock grants permits
  ARGV[4] readMs   when the caller read the server's clock, in ms since 1970
  ARGV[5] periodMs length of the period
  ARGV[6] shiftMs  added to a time before it is divided by periodMs; -1 for a period that starts with each run
  ARGV[7] needsOk  1 if only a successful run counts
  ARGV[8] write    1 to record the run; 0 to check only
  ARGV[9] keepMs   minimum lifetime of the record
  ARGV[10] host    host name of the process
  ARGV[11] pid     process id on that host
  ARGV[12] name    clientName option of the process, or empty
  ARGV[13] label   label of the lease, or empty
  REPLY   {0}            started: the run may start; it is recorded if `write` is 1
          {1, texts...}  already: the fields of the last run from owner to code, then the `read` of the run that counts
          {2}            lost: the claim does not hold the lock
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
    -- The next run may start a tenth of the period early, so that a daily job that starts a second earlier than
    -- yesterday is not skipped.
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
