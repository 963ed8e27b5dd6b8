--[[
  recipes/coalesce/reclaim: restore a run that a failover has lost, while its lease is still valid.

  The script restores a run only while this server may not grant yet. The server has granted no run since it took over,
  so all its data comes from the previous server or was also restored. Earlier runs have lower tokens than the caller's,
  and later runs have higher ones. The restored run counts as begun, with the same arrivals: calls that arrived before
  it stay superseded, and claims that joined it get its result once they have sent a request to this server.

  KEYS[1] lock       string, owner of the claim that runs
  KEYS[2] fence      string, last token issued
  KEYS[3] waiting    sorted set, see recipes/coalesce/acquire
  KEYS[4] joining    sorted set, see recipes/coalesce/acquire
  KEYS[5] run        hash, see recipes/coalesce/acquire
  KEYS[6] marker     hash, run: id of the server run that may grant
  ARGV[1] owner      id of the claim that was granted
  ARGV[2] token      token of its grant
  ARGV[3] leaseMs    length of the lease, counted from now
  ARGV[4] arrivalUs  arrival of the call
  ARGV[5] coversUs   latest arrival of a claim that its run covers
  RENEWS
  REPLY   0          refused: this server has lost nothing, or another claim has been granted since
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
  -- The request to end was for an earlier run. The claim that sent it repeats it for this run with its next request.
  redis.call('HDEL', KEYS[5], 'cancel')
end
if run[2] ~= token then
  redis.call('HSET', KEYS[5], 'before', run[3] or '0', 'beforeBy', run[4] or '')
end
redis.call('HSET', KEYS[5], 'granted', owner, 'at', arrival, 'begun', token, 'by', owner, 'arrival', arrival, 'covers', covers, 'back', token)
redis.call('PEXPIRE', KEYS[5], leaseMs + 600000)
return 1
