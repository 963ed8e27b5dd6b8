--[[
  recipes/once/reclaim: restore an attempt that a failover has lost, while its lease is still valid.

  Runs only while this server may not grant. No attempt has begun on this server since it took over, so every record
  here comes from the previous server or was restored in the same way. Earlier attempts have lower tokens than the
  caller's, and later ones have higher tokens. If the record has the caller's own token and is not running, the attempt
  has ended. A call that is over stays over, because an operator may have resolved it here. The caller sends the latest
  saved data that it knows of, because no other attempt can have saved any since.

  KEYS[1] record        hash, see recipes/once/begin
  KEYS[2] marker        hash, run: id of the server run that may grant
  ARGV[1] owner         id of the attempt
  ARGV[2] token         token of its grant
  ARGV[3] leaseMs       length of the lease, counted from now
  ARGV[4] keepMs        how long the record lives from now
  ARGV[5] fingerprint   fingerprint of the call
  ARGV[6] attempt       number of the attempt
  ARGV[7] firstMs       when the first attempt began, in milliseconds since 1970
  ARGV[8] isSaved       1 if there is saved data, 0 if not
  ARGV[9] saved         the saved data
  ARGV[10] saves        number of this attempt's last save that was confirmed
  RENEWS
  REPLY   0             refused: this server has lost nothing, another attempt has begun since, or this one has ended
          1             reclaimed
]]
local owner, token, leaseMs, keepMs, fingerprint = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local attempt, firstMs, isSaved, saved, saves = ARGV[6], ARGV[7], ARGV[8] == '1', ARGV[9], ARGV[10]

-- include run-id
local run = runId(redis.pcall('INFO', 'server'), redis.pcall('INFO', 'replication'))
if not run or redis.call('HGET', KEYS[2], 'run') == run then
  return 0
end

local record = redis.call('HMGET', KEYS[1], 'state', 'owner', 'token', 'until')
local state, last = record[1], tonumber(record[3] or 0)
local isOwn = state == 'running' and record[2] == owner
if last - token > 0 or (last - token == 0 and not isOwn) or state == 'done' or state == 'failed' or state == 'bare' then
  return 0
end
local time = redis.call('TIME')
local endUs = time[1] * 1000000 + time[2] + leaseMs * 1000
if isOwn then
  endUs = math.max(tonumber(record[4]), endUs)
end
redis.call('HDEL', KEYS[1], 'value', 'ended', 'resolved', 'saved')
-- The record shows an earlier attempt that never ended before this one took over, so its progress is unknown.
if state == 'running' and not isOwn then
  redis.call('HSET', KEYS[1], 'died', '1')
end
-- A token is the time of its grant in microseconds, unless the clock was set back.
local sinceMs = string.format('%.0f', math.floor(token / 1000))
redis.call('HSET', KEYS[1], 'print', fingerprint, 'state', 'running', 'owner', owner, 'token', token, 'attempt', attempt, 'first', firstMs, 'since', sinceMs, 'until', string.format('%.0f', endUs), 'saves', saves)
if isSaved then
  redis.call('HSET', KEYS[1], 'saved', saved)
end
redis.call('PEXPIRE', KEYS[1], keepMs)
return 1
