--[[
  lua/lineage-verdict: how long a server must wait before it grants locks, given its own state and its marker.

  Only this function decides that. It is pure: it reads and writes no keys, and reads no clock.

  - `run` is the current run of this server.
  - According to the marker, `settled` is the run that may grant, and `pending` is the run that has been waiting since
    `sinceMs`. Each is false if there is none.
  - A server without a marker counts as new, unless it was promoted. With `isStrict`, a new server may grant only once
    it has been up for as long as the longest lease, because it may have forgotten its locks.
  - `isShard` is true if the marker moves between servers with its slot. Then a marker of another run does not show
    that this server took over. If it was not promoted, it could only have lost grants when it started, so the
    wait counts from then.
  - `isAlone` is true for a server of a quorum if too few of the other servers have reported their longest lease since
    this run began. A forgotten lease may be longer than any known one, so the server waits at least one hour.
  Returns two values: how many ms to wait from now (0 if the server may grant), and when the wait began.
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
