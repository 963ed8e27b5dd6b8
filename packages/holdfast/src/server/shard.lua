--[[
  server/shard: whether the server of a cluster slot is known to have all grants that were ever made in the slot.

  A slot that was migrated is complete. A slot of a server that took over from another may lack the most recent grants.
  The keys do not show the difference. So each slot has a marker, which names the server run for which a client has
  found the slot complete. If the marker names another run, as it does after each migration, the client asks all masters
  that this server lists. The client vouches for the slot if none of them took over recently
  (stores/cluster-failover-guard.ts). The `home` of a server is the last of its slots. The marker there applies to the
  whole server (server/lineage).

  KEYS[1] marker   hash, run: the run for which this slot is known to be complete
  ARGV[1] vouched  the run for which the caller has found this slot complete, or empty
  ARGV[2] list     1 to list the home of this server and of every other master
  REPLY   {0, home, words...}  whole: words are this run, this server's id, and the id and home of every other master
          {1, home, words...}  foreign: no client has found the slot complete for this run; words as above
          {2}                  hidden: INFO or CLUSTER is forbidden or renamed, or lacks the fields
]]
local vouched, list = ARGV[1], ARGV[2]

-- include run-id
local run = runId(redis.pcall('INFO', 'server'), redis.pcall('INFO', 'replication'))
local id = redis.pcall('CLUSTER', 'MYID')
if not run or type(id) ~= 'string' then
  return {2}
end

local found = redis.call('HGET', KEYS[1], 'run')
if found ~= run and vouched == run then
  -- Do this write first. The server accepts it even when out of memory, and then accepts all later writes of this
  -- script (docs/adr/135).
  redis.call('HDEL', KEYS[1], '')
  redis.call('HSET', KEYS[1], 'run', run)
  found = run
end
-- The marker expires 15 to 30 days after the last call, because extending it on every call would cost a write.
if found == run and redis.call('PTTL', KEYS[1]) < 1296000000 then
  redis.call('PEXPIRE', KEYS[1], 2592000000)
end

local home, others = -1, {}
if list == '1' then
  local ranges = redis.pcall('CLUSTER', 'SLOTS')
  if ranges.err then
    return {2}
  end
  for _, range in ipairs(ranges) do
    local master = range[3][3]
    if master == id then
      home = math.max(home, range[2])
    else
      others[master] = math.max(others[master] or -1, range[2])
    end
  end
end
local answer = {found == run and 0 or 1, home, run, id}
for master, last in pairs(others) do
  answer[#answer + 1] = master
  answer[#answer + 1] = tostring(last)
end
return answer
