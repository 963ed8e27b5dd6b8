--[[
  server/shard: whether the server that has a slot of a cluster is known to have all that was ever granted in it.

  A slot that was moved is whole; one that came to this server when it took over from another may lack the last grants.
  Keys of it look the same. So each slot has a marker that names the run of the server for which somebody has found it
  whole, and where that is another run, as after each move, the caller has to find out: it asks all masters that this
  server lists, and vouches for the slot if none of them took over just now (stores/shard-gate.ts). The `home` of a
  server is the last of its slots: there lies the marker that speaks for all of it (server/lineage).

  KEYS[1] marker   hash, run: the run for which this slot is known to be whole
  ARGV[1] vouched  the run for which the caller has found it whole, or nothing
  ARGV[2] list     1 to be told the home of this server, and of each other master
  REPLY   {0, home, words...}  whole: words are this run, the id of this server, and of each other master id and home
          {1, home, words...}  foreign: nobody has found it whole for this run
          {2}                  hidden: INFO or CLUSTER is forbidden here, renamed, or does not say
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
  -- A full server accepts this first write, and then the others (docs/adr/135).
  redis.call('HDEL', KEYS[1], '')
  redis.call('HSET', KEYS[1], 'run', run)
  found = run
end
-- It goes a month after it was last looked at. Written at each look it would cost a write each.
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
