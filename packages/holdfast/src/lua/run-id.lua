--[[
  lua/run-id: the id of this run of this server, which no other server and no other run has.

  A run is a time in which a process is master without a break: it ends when the process does, and when the server is
  demoted. So a master that was demoted and promoted again has begun another one, though its process is the same. A
  process that was never promoted shows no second replication id; one that was has taken a new first one then. (A master
  that had no replica for `repl-backlog-ttl`, an hour if nobody has set it, shows none either.)
  Returns false where the server does not show it.
]]
local function runId(info, replication)
  local process = type(info) == 'string' and string.match(info, 'run_id:(%x+)')
  local former = type(replication) == 'string' and string.match(replication, 'master_replid2:(%x+)')
  if not process or not former then
    return false, false
  end
  local isPromoted = string.find(former, '[^0]') ~= nil
  return isPromoted and process .. '/' .. (string.match(replication, 'master_replid:(%x+)') or '') or process, isPromoted
end
