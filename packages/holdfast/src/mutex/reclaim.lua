--[[
  mutex/reclaim: put back a valid lease that a failover has lost.

  Works only while this server must not grant. The server has granted nothing since it took over, so all its data comes
  from the previous server or from other reclaims, and may be out of date. If the last token on record is lower than the
  caller's, the holder on record held the lock before the caller and is replaced. If it is higher, another claim held
  the lock after the caller, and the request is refused. The script raises the fence, so that the next token is higher
  than the one that was put back.

  KEYS[1] lock     string, owner id of the holder; expires with its lease
  KEYS[2] fence    string, last token issued
  KEYS[3] queue    sorted set, owner of a waiting claim -> arrival number
  KEYS[4] handed   string, client whose grant by message is not confirmed yet
  KEYS[5] marker   hash; the field `run` names the server run that may grant
  ARGV[1] owner    id of the claim that was granted
  ARGV[2] token    last token of its block
  ARGV[3] leaseMs  length of the lease, counted from now
  RENEWS
  REPLY   0        refused: this server lost nothing, or another claim has been granted since
          1        reclaimed
]]
local owner, token, leaseMs = ARGV[1], ARGV[2], ARGV[3]

-- include run-id
local run = runId(redis.pcall('INFO', 'server'), redis.pcall('INFO', 'replication'))
if not run or redis.call('HGET', KEYS[5], 'run') == run then
  return 0
end

local holder = redis.call('GET', KEYS[1])
local last = redis.call('GET', KEYS[2])
if last and last - token > 0 then
  return 0
end
if holder and holder ~= owner then
  -- A client that writes the key directly issues no tokens. It may have acquired the lock after the caller, so refuse.
  local isOurs = string.match(holder, '^[^/]+/%d+/%d+/%d+')
  if not isOurs or not last or last - token >= 0 then
    return 0
  end
end
redis.call('SET', KEYS[1], owner, 'PX', leaseMs)
redis.call('SET', KEYS[2], token, 'PX', leaseMs + 600000)
redis.call('ZREM', KEYS[3], owner)
redis.call('DEL', KEYS[4])
return 1
