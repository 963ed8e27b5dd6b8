--[[
  server/lineage: whether this server may grant locks, or from when on it may again.

  A server that took over from another, or came back from its disk, may lack the last grants. The marker says for
  which run of which server that is settled. Where it is another one, nothing is granted for as long as the longest
  lease in use: by then whatever was granted elsewhere is over, or was put back by its holder. One step, so that all
  clients agree when that is, and two that ask at once do not make it shorter. Each who asks also says how long its own
  leases are, before it is granted any, and so a wait that is under way may become longer.

  The longest lease is kept for the period in which it was told and for the next one. A period lasts an hour longer
  than any lease that was told, and whoever uses a server tells it every minute: so what is in use is never forgotten,
  and what is not, is. The marker itself goes a month after the last lease that can have been granted.

  A server of a quorum that forgot its longest lease cannot know how long to wait. So it waits for an hour, unless a
  caller says that it has asked enough of the other servers since this run began (docs/adr/131-longest-lease-on-a-quorum.md).

  KEYS[1] marker   hash: run, the run that may grant; pending, the one that waits, and sinceMs; longestMs, beforeMs and
                   periodMs: the longest lease of this period and of the last one, and when this one began; heard, of
                   a server of a quorum: the run for which enough of the others were asked
  ARGV[1] leaseMs  the longest lease that the caller asks for
  ARGV[2] strict   1 if a server without a marker that was started just now may have forgotten its locks, else 0
  ARGV[3] place    `shard` if the marker lies in a slot of a cluster, so that it may have come from another server;
                   `voter` if the server is one of a quorum; else `server`
  ARGV[4] vouched  a run of which the caller knows that it may grant, or nothing
  ARGV[5] heard    a run since whose beginning the caller has asked enough of the other servers of a quorum, whose
                   longest lease is part of leaseMs; or nothing
  REPLY   {0, longestMs, run...}          settled: this run may grant leases of that length; longer ones are to be told first
          {1, longestMs, restMs, run...}  quiet: this run may not grant for restMs more
          {3, longestMs, restMs, run...}  alone: as quiet, but only until enough of the other servers were asked
          {2}                             hidden: INFO is forbidden here, renamed, or does not say
]]
local leaseMs, isStrict, place, vouched, heard = tonumber(ARGV[1]), ARGV[2] == '1', ARGV[3], ARGV[4], ARGV[5]

-- include run-id
-- include lineage-verdict
local info = redis.pcall('INFO', 'server')
local run, isPromoted = runId(info, redis.pcall('INFO', 'replication'))
if not run then
  return {2}
end

local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local marker = redis.call('HMGET', KEYS[1], 'run', 'pending', 'sinceMs', 'longestMs', 'beforeMs', 'periodMs', 'heard')
local settled, pending = marker[1], marker[2]
local longestMs, beforeMs = tonumber(marker[4] or 0), tonumber(marker[5] or 0)
local periodMs = tonumber(marker[6] or nowMs)

if settled == run and nowMs - periodMs > 3600000 + math.max(longestMs, beforeMs) then
  beforeMs, longestMs, periodMs = longestMs, 0, nowMs
end
-- A full server accepts this first write, and then the others (docs/adr/135).
redis.call('HDEL', KEYS[1], '')
if leaseMs > longestMs then
  longestMs = leaseMs
  redis.call('HSET', KEYS[1], 'longestMs', longestMs, 'beforeMs', beforeMs, 'periodMs', periodMs)
end
local allMs = math.max(longestMs, beforeMs)

-- A difference of two clocks in whole seconds: a server that was started 10 ms ago may say 1.
local upMs = math.max(0, tonumber(string.match(info, 'uptime_in_seconds:(%d+)') or 0) - 1) * 1000
local isAlone = place == 'voter' and marker[7] ~= run and heard ~= run
local restMs, sinceMs = verdict(
  run, isPromoted, upMs, settled, pending, tonumber(marker[3] or 0), allMs, isStrict, nowMs, place == 'shard', isAlone
)
if vouched == run then
  restMs = 0
end
-- Written before anything that needs it, and not at every call.
local keepMs = allMs + 2592000000
if redis.call('PTTL', KEYS[1]) < keepMs / 2 or settled ~= run then
  redis.call('HSET', KEYS[1], 'beforeMs', beforeMs, 'longestMs', longestMs)
  redis.call('PEXPIRE', KEYS[1], keepMs)
end
if heard == run and marker[7] ~= run then
  redis.call('HSET', KEYS[1], 'heard', run)
end
if restMs > 0 then
  if pending ~= run then
    redis.call('HSET', KEYS[1], 'pending', run, 'sinceMs', sinceMs)
  end
  return {isAlone and 3 or 1, allMs, restMs, run}
end
if settled ~= run then
  redis.call('HSET', KEYS[1], 'run', run)
  redis.call('HDEL', KEYS[1], 'pending', 'sinceMs')
end
return {0, allMs, run}
