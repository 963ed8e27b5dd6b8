--[[
  recipes/once/begin: begin a call that must run only once, or report its state.

  An attempt keeps the call while its lease is renewed. When the lease expires, the next attempt takes the call over,
  with the data that was saved. A retry with the same owner gets the same reply and renews the lease.

  KEYS[1] record       hash: print, state, owner, until, token, attempt, first, since; saved, saves (number of saves by
                       this attempt), died, value, ended, resolved
  ARGV[1] owner        id of this attempt
  ARGV[2] leaseMs      length of its lease
  ARGV[3] keepMs       how long the record lives from now
  ARGV[4] fingerprint  fingerprint of the call; a different one under the same key is refused
  ARGV[5] isStrict     1 to refuse a different fingerprint even after the call was released
  GRANTS  by itself
  REPLY   {0, token, attempt, firstMs, saved...}          granted; when the first attempt began; the saved data, if any
          {1, restMs, nowUs, attempt, sinceMs, owner...}  running: another attempt's lease ends in restMs
          {2, token, attempt, firstMs, words...}          over: the state (done, failed or bare) and the value
          {3, attempt, sinceMs, words...}                 blocked: the outcome is unknown; the reason
          {4, attempt, sinceMs, words...}                 mismatch: the fingerprint differs; the state and the owner
]]
local owner, leaseMs, keepMs, fingerprint, isStrict = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5] == '1'
local time = redis.call('TIME')
local nowUs = time[1] * 1000000 + time[2]
local nowMs = math.floor(nowUs / 1000)

local record = redis.call('HMGET', KEYS[1], 'print', 'state', 'owner', 'until', 'token', 'attempt', 'first', 'since', 'saved', 'value', 'ended', 'died')
local state, holder, untilUs, token, saved, died = record[2], record[3], tonumber(record[4] or 0), record[5], record[9], record[12]
local attempt, firstMs, sinceMs = tonumber(record[6] or 0), tonumber(record[7] or nowMs), tonumber(record[8] or nowMs)

-- A released call without saved data accepts a different fingerprint, unless isStrict is set. If an attempt crashed,
-- its progress is unknown, so its fingerprint still counts.
local isAnother = state and record[1] ~= fingerprint
if isAnother and (state ~= 'released' or saved or died or isStrict) then
  return {4, attempt, sinceMs, state, holder or ''}
end
if state == 'done' or state == 'failed' or state == 'bare' then
  return {2, tonumber(token), attempt, firstMs, state, record[10] or ''}
end
if state == 'blocked' then
  return {3, attempt, tonumber(record[11] or sinceMs), record[10] or ''}
end

local function begin()
  local endUs = math.max(untilUs, nowUs + leaseMs * 1000)
  redis.call('HSET', KEYS[1], 'until', string.format('%.0f', endUs))
  redis.call('PEXPIRE', KEYS[1], keepMs)
  if saved then
    return {0, tonumber(token), attempt, firstMs, saved}
  end
  return {0, tonumber(token), attempt, firstMs}
end
if state == 'running' and holder == owner then
  return begin()
end
if state == 'running' and untilUs > nowUs then
  return {1, math.ceil((untilUs - nowUs) / 1000), nowUs, attempt, sinceMs, holder}
end

if isAnother then
  attempt, firstMs = 0, nowMs
end
attempt, sinceMs, untilUs = attempt + 1, nowMs, 0
token = string.format('%.0f', math.max(nowUs, tonumber(token or 0) + 1))
redis.call('HDEL', KEYS[1], 'value', 'ended', 'resolved', 'saves')
if state == 'running' then
  redis.call('HSET', KEYS[1], 'died', '1')
end
redis.call('HSET', KEYS[1], 'print', fingerprint, 'state', 'running', 'owner', owner, 'token', token, 'attempt', attempt, 'first', string.format('%.0f', firstMs), 'since', string.format('%.0f', sinceMs))
return begin()
