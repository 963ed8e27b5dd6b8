--[[
  mutex/reclaim: put back a lease that is still good, where a failover has lost it.

  Only while this server may not grant: nobody has been granted anything by it since it took over, so all that it
  shows comes from the server before it, or was put back as well. What it shows may be out of date: a holder whose
  token is lower than the caller's had been followed by the caller. A token that is higher means that the caller had
  been followed by others. The fence is raised, so that the next token is higher than the one that was put back.

  KEYS[1] lock     string, owner of the claim that holds; expires with its lease
  KEYS[2] fence    string, last token issued
  KEYS[3] queue    sorted set, owner of a waiting claim -> arrival number
  KEYS[4] handed   string, client that was granted by message and has not confirmed
  KEYS[5] marker   hash, run: the run of this server that may grant
  ARGV[1] owner    id of the claim that was granted
  ARGV[2] token    last token of its block
  ARGV[3] leaseMs  length of the lease, counted from now
  RENEWS
  REPLY   0        refused: this server lacks nothing, or somebody else was granted since
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
  -- A client that writes the key by itself issues no tokens, so nothing says that it came before.
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
