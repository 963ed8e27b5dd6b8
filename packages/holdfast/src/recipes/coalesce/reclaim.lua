--[[
  recipes/coalesce/reclaim: put back a run whose lease is still good, where a failover has lost it.

  Only while this server may not grant: nobody has been granted a run here since it took over, so all that it shows comes from the
  server before it, or was put back as well. A run with a lower token had been followed by the caller's. With a higher one the
  caller's had been followed. It counts as begun, with the same arrivals: whoever came before it stays superseded, and those who
  joined it are told what it finds, when they have asked here.

  KEYS[1] lock       string, owner of the claim that runs
  KEYS[2] fence      string, last token issued
  KEYS[3] waiting    sorted set, see recipes/coalesce/acquire
  KEYS[4] joining    sorted set, see there
  KEYS[5] run        hash, see there
  KEYS[6] marker     hash, run: the run of this server that may grant
  ARGV[1] owner      id of the claim that was granted
  ARGV[2] token      of its grant
  ARGV[3] leaseMs    length of the lease, counted from now
  ARGV[4] arrivalUs  when it counts as having arrived
  ARGV[5] coversUs   until when those had arrived who share what it finds
  RENEWS
  REPLY   0          refused: this server lacks nothing, or somebody else was granted since
          1          reclaimed
]]
local owner, token, leaseMs, arrival, covers = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

-- include run-id
local thisRun = runId(redis.pcall('INFO', 'server'), redis.pcall('INFO', 'replication'))
if not thisRun or redis.call('HGET', KEYS[6], 'run') == thisRun then
  return 0
end

local holder = redis.call('GET', KEYS[1])
local last = redis.call('GET', KEYS[2]) or '0'
if last - token > 0 or (holder and holder ~= owner and last - token == 0) then
  return 0
end
redis.call('SET', KEYS[1], owner, 'PX', leaseMs)
redis.call('SET', KEYS[2], token, 'PX', leaseMs + 600000)
redis.call('ZREM', KEYS[3], owner)
redis.call('ZREM', KEYS[4], owner)

local run = redis.call('HMGET', KEYS[5], 'granted', 'begun', 'arrival', 'by')
if run[1] ~= owner then
  -- Who had asked an earlier one to end asks this one when it hears of it.
  redis.call('HDEL', KEYS[5], 'cancel')
end
if run[2] ~= token then
  redis.call('HSET', KEYS[5], 'before', run[3] or '0', 'beforeBy', run[4] or '')
end
redis.call('HSET', KEYS[5], 'granted', owner, 'at', arrival, 'begun', token, 'by', owner, 'arrival', arrival, 'covers', covers, 'back', token)
redis.call('PEXPIRE', KEYS[5], leaseMs + 600000)
return 1
