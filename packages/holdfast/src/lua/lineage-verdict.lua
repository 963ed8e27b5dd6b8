--[[
  lua/lineage-verdict: how long a server must not grant, given what it knows about itself and its marker.

  Only this function decides that. It is pure: no reads, no writes, no clock.

  - `run` is this run of this server.
  - `settled` is the run that may grant according to the marker, and `pending` the one that has been waiting since
    `sinceMs`; each is false if there is none.
  - A server without a marker counts as new, unless it was promoted. With `isStrict`, a server that has been up for
    less than the longest lease may also have forgotten its locks.
  - `isShard` is true if the marker moves between servers with its slot. Then a marker of another run does not show
    that this server took over: a server that was not promoted can have lost something only when it was started.
  - `isAlone` is true for a server of a quorum if too few of the others have reported their longest lease since this
    run began. A forgotten lease may be longer than any known one, so the server waits at least one hour.
  Returns how many ms to wait from now, 0 if the server may grant, and the time at which the wait began.
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
  -- If the clock was set back, the wait is at most as long as one that begins now.
  return math.max(0, math.min(longestMs, sinceMs + longestMs - nowMs)), sinceMs
end
