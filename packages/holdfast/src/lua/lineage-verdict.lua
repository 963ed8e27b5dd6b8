--[[
  lua/lineage-verdict: for how long a server is to grant nothing, from what it knows of itself and of its marker.

  The one place that decides it. Pure: it reads nothing, writes nothing and asks no clock.

  `run` is this run of this server; `settled` the run for which the marker says that it may grant, and `pending` the
  one that waits since `sinceMs`, false if there is none. A server without a marker is used for the first time, unless
  it was promoted; or, where `isStrict`, has been up for less than the longest lease, and may have forgotten all of it.
  `isShard` if the marker moves from server to server with its slot: then one of another run does not show that this
  server took over, and a server that was not promoted can have lost something only when it was started.
  `isAlone` if it is a server of a quorum, and too few of the others have told how long leases are since it began this
  run: a lease that it has forgotten may be longer than any that it knows of, so it waits for an hour at least.
  Returns how long to wait from now, 0 if it may grant, and since when it waits.
]]
local function verdict(
  run, isPromoted, upMs, settled, pending, sinceMs, longestMs, isStrict, nowMs, isShard, isAlone
)
  if settled == run then
    return 0, nowMs
  end
  if isAlone then
    longestMs = math.max(longestMs, 3600000)
  end
  if pending ~= run then
    sinceMs = nowMs
    if not settled and not pending and not isPromoted then
      sinceMs = isStrict and nowMs - upMs or nowMs - longestMs
    elseif isShard and not isPromoted then
      sinceMs = nowMs - upMs
    end
  end
  -- A clock that was set back makes the wait no longer than it would be if it began now.
  return math.max(0, math.min(longestMs, sinceMs + longestMs - nowMs)), sinceMs
end
