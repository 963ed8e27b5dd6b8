--[[
  recipes/cache/look: read an entry, and grant the load to this caller if there is no fresh value and no other load.

  The script does not declare GRANTS, because loads need no protection after a failover: if two processes load the
  same value, one load is wasted but does no harm. A retry with the same owner gets the same reply and renews the lease.

  KEYS[1] entry    hash: value, fresh, stale; owner, until, token, waited; failures, failed, verdict; filled,
                   invalidated
  ARGV[1] owner    id of this attempt
  ARGV[2] leaseMs  length of its lease
  ARGV[3] keepMs   minimum lifetime of the entry, counted from now, if the load is granted
  REPLY   {0, freshMs, value...}        fresh: the value, which stays fresh for freshMs
          {1, token, value...}          granted: this caller loads; the stale value, if any
          {2, restMs, token, value...}  loading: another caller's lease ends in restMs; the stale value, if any
]]
local owner, leaseMs, keepMs = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local nowUs = time[1] * 1000000 + time[2]

local entry = redis.call('HMGET', KEYS[1], 'value', 'fresh', 'stale', 'owner', 'until', 'token', 'waited')
local value, freshUs, holder, untilUs, token = entry[1], tonumber(entry[2] or 0), entry[4], tonumber(entry[5] or 0), tonumber(entry[6] or 0)
if value and freshUs > nowUs then
  return {0, math.ceil((freshUs - nowUs) / 1000), value}
end
if value and tonumber(entry[3] or 0) <= nowUs then
  value = false
end

if holder ~= owner and untilUs > nowUs then
  local restMs = math.ceil((untilUs - nowUs) / 1000)
  if value then
    return {2, restMs, token, value}
  end
  if not entry[7] then
    redis.call('HSET', KEYS[1], 'waited', 1)
  end
  return {2, restMs, token}
end

if holder ~= owner then
  token = math.max(nowUs, token + 1)
end
local endUs = nowUs + leaseMs * 1000
redis.call('HSET', KEYS[1], 'owner', owner, 'token', string.format('%.0f', token), 'until', string.format('%.0f', endUs))
if redis.call('PTTL', KEYS[1]) < keepMs then
  redis.call('PEXPIRE', KEYS[1], keepMs)
end
if value then
  return {1, token, value}
end
return {1, token}
