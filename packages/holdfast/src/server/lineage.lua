--[[
  server/lineage: whether this server may grant locks, and if not, when it may.

  A server that took over from another, or was restored from disk, may lack the last grants. The marker names the
  run that may grant. If that is not this server's current run, the server grants nothing for as long as the longest
  lease in use. By then, all leases granted elsewhere have ended or been restored by their holders. The check is one
  atomic step, so that all clients agree on the end of this wait, and two that ask at the same time do not shorten it.
  Each client also reports the length of its own leases before it is granted any, so a wait may become longer.

  The longest lease is kept for the period in which it was reported, and for the next one. A period lasts one hour
  longer than any reported lease, and clients report every minute. So a lease length in use is never forgotten, but a
  length that is no longer used is eventually forgotten. The marker itself expires a month after the end of the last
  lease that could have been granted.

  In a new run, a server of a quorum may have forgotten its longest lease. So it waits for at least one hour, unless a
  client reports that it has asked enough of the other servers since this run began
  (docs/adr/131-longest-lease-on-a-quorum.md).

  KEYS[1] marker   hash: run, the run that may grant; pending, the run that waits; sinceMs, the start of its wait;
                   longestMs and beforeMs, the longest lease of this period and of the last one; periodMs, the start
                   of this period; heard, on a server of a quorum, the run for which enough other
                   servers have been asked
  ARGV[1] leaseMs  longest lease that the caller requests
  ARGV[2] strict   1 if a recently started server without a marker may have forgotten its locks, else 0
  ARGV[3] place    `shard` if the marker is in a slot of a cluster, so that it may come from another server;
                   `voter` if the server is one of a quorum; else `server`
  ARGV[4] vouched  run that may grant, as the caller has found; or empty
  ARGV[5] heard    run for which the caller has asked enough of the other servers of a quorum since the run began, with
                   their longest lease included in leaseMs; or empty
  REPLY   {0, longestMs, run...}          settled: this run may grant leases up to longestMs; report longer ones first
          {1, longestMs, restMs, run...}  quiet: this run may not grant for another restMs
          {3, longestMs, restMs, run...}  alone: like quiet, but only until enough other servers have been asked
                                          In all three, `shared` follows the run if replicas get the
                                          scripts too (Redis before 7)
          {2}                             hidden: INFO is forbidden or renamed, or lacks the fields
]]
local leaseMs, isStrict, place, vouched, heard = tonumber(ARGV[1]), ARGV[2] == '1', ARGV[3], ARGV[4], ARGV[5]

-- include run-id
-- include lineage-verdict
local info = redis.pcall('INFO', 'server')
local run, isPromoted = runId(info, redis.pcall('INFO', 'replication'))
if not run then
  return {2}
end

-- The last word of the replies. The server cuts a reply off at the first nil, so nil leaves the word out.
local shared = not redis.REDIS_VERSION_NUM and 'shared' or nil
local time = redis.call('TIME')
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)
local marker = redis.call('HMGET', KEYS[1], 'run', 'pending', 'sinceMs', 'longestMs', 'beforeMs', 'periodMs', 'heard')
local settled, pending = marker[1], marker[2]
local longestMs, beforeMs = tonumber(marker[4] or 0), tonumber(marker[5] or 0)
local periodMs = tonumber(marker[6] or nowMs)

if settled == run and nowMs - periodMs > 3600000 + math.max(longestMs, beforeMs) then
  beforeMs, longestMs, periodMs = longestMs, 0, nowMs
end
-- Do this write first. The server accepts it even when out of memory, and then accepts all later writes of this
-- script (docs/adr/135).
redis.call('HDEL', KEYS[1], '')
if leaseMs > longestMs then
  longestMs = leaseMs
  redis.call('HSET', KEYS[1], 'longestMs', longestMs, 'beforeMs', beforeMs, 'periodMs', periodMs)
end
local allMs = math.max(longestMs, beforeMs)

-- Subtract 1 s: the server computes its uptime from whole seconds, and may report 1 s just 10 ms after its start.
local upMs = math.max(0, tonumber(string.match(info, 'uptime_in_seconds:(%d+)') or 0) - 1) * 1000
local isAlone = place == 'voter' and marker[7] ~= run and heard ~= run
local restMs, sinceMs = verdict(
  run, isPromoted, upMs, settled, pending, tonumber(marker[3] or 0), allMs, isStrict, nowMs, place == 'shard', isAlone
)
if vouched == run then
  restMs = 0
end
-- The expiry is set before the fields that need it. It is not set on every call, to save writes.
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
  return {isAlone and 3 or 1, allMs, restMs, run, shared}
end
if settled ~= run then
  redis.call('HSET', KEYS[1], 'run', run)
  redis.call('HDEL', KEYS[1], 'pending', 'sinceMs')
end
return {0, allMs, run, shared}
