--[[
  recipes/once/reclaim: put back an attempt whose lease is still good, where a failover has lost it.

  Only while this server may not grant: nobody has begun the call here since it took over, so all that it shows comes from the
  server before it, or was put back as well. An attempt with a lower token had been followed by the caller. With a higher
  one the caller had been followed; with its own, it has ended; and a call that is over stays so, since somebody may have
  resolved it here. What was saved is what the caller knows of: nobody else could save anything.

  KEYS[1] record        hash, see recipes/once/begin
  KEYS[2] marker        hash, run: the run of this server that may grant
  ARGV[1] owner         id of the attempt
  ARGV[2] token         of its grant
  ARGV[3] leaseMs       length of its lease from now
  ARGV[4] keepMs        how long the record lives from now
  ARGV[5] fingerprint   what the call is about
  ARGV[6] attempt       which one it is
  ARGV[7] firstMs       when the first one began, in ms since 1970
  ARGV[8] isSaved       1 if there is a recovery point, 0 if not
  ARGV[9] saved         the recovery point
  ARGV[10] saves        how often this attempt has saved, as far as it has been told
  RENEWS
  REPLY   0             refused: this server lacks nothing, or another attempt has begun since, or this one has ended
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
-- The one before it had not ended for all that this server knows, and was followed: nobody knows how far it came.
if state == 'running' and not isOwn then
  redis.call('HSET', KEYS[1], 'died', '1')
end
-- A token is the time of its grant, unless that clock went back.
local sinceMs = string.format('%.0f', math.floor(token / 1000))
redis.call('HSET', KEYS[1], 'print', fingerprint, 'state', 'running', 'owner', owner, 'token', token, 'attempt', attempt, 'first', firstMs, 'since', sinceMs, 'until', string.format('%.0f', endUs), 'saves', saves)
if isSaved then
  redis.call('HSET', KEYS[1], 'saved', saved)
end
redis.call('PEXPIRE', KEYS[1], keepMs)
return 1
