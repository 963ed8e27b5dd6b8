--[[
  lua/run-id: the id of this run of this server, unique among servers and runs.

  A run is an uninterrupted period as master. It ends when the process ends or when the server is demoted. So a master
  that was demoted and promoted again has begun another run in the same process. A process that was never promoted
  shows no second replication id. (Nor does a master that had no replica for `repl-backlog-ttl`, one hour by default.) A
  promotion gives the process a new first replication id, which then becomes part of the run's id. Returns the id and
  whether the server was promoted, or false and false if the server does not show the id.
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
