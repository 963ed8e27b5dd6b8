--[[
  permits/resize: change the number of permits, regardless of holders and waiters.

  If the number grows, this grants the new permits to waiters. If it shrinks, holders keep their permits, and nothing is
  granted until the permits in use fit within the new number. Processes that declare the new number, or one that was in
  effect before, are accepted. The state is kept for 30 days, so that a weekend without use does not undo the change. A
  late copy of a recent request does nothing, so it cannot undo a later request.

  KEYS[1] state     hash: capacity, declared, used, top, free, first, until, keepMs, resizes; owner -> grant of a holder
  KEYS[2] fence     string, last token issued
  KEYS[3] holders   sorted set, owner of a holder -> end of its lease, in microseconds of the server's clock
  KEYS[4] slots     sorted set, free slot numbers below top
  KEYS[5] queue     sorted set, owner of a waiting claim -> arrival number
  KEYS[6] pause     string, the current pause, during which nothing is granted; expires at its end
  ARGV[1] size      the new capacity
  ARGV[2] declared  the capacity that the caller was configured with
  ARGV[3] keepMs    minimum time, in ms, for which the state is kept after its last use
  ARGV[4] request   id of this request
  ARGV[5] inbox     prefix of inbox channels: the channel of a client is this plus its client id
  ARGV[6] numbered  grants up to this weight get slot numbers; 0 for none
  GRANTS  by hand-off
  REPLY   1         resized
]]
local size, declared, request, inbox = ARGV[1], ARGV[2], ARGV[4], ARGV[5]
local numbered, owner = tonumber(ARGV[6]), ''

-- include notify
-- include permits-state
-- include permits
-- include permits-grant
local resizes = redis.call('HGET', KEYS[1], 'resizes') or ''
if string.find(resizes, request, 1, true) then
  return 1
end
keepMs = math.max(keepMs, tonumber(ARGV[3]))
local known = state[2] or ',' .. declared .. ','
if not string.find(known, ',' .. size .. ',', 1, true) then
  known = (#known < 200 and known or string.format(',%.0f,', capacity)) .. size .. ','
end
if capacity == 0 then
  begin(size, known)
else
  reap()
  capacity = tonumber(size)
  redis.call('HSET', KEYS[1], 'capacity', size, 'declared', known, 'keepMs', keepMs)
  lengthen(0)
end
-- The newest request comes first. The list is cut to 500 bytes.
redis.call('HSET', KEYS[1], 'resizes', string.sub(request .. ',' .. resizes, 1, 500))
grantHeads()
return 1
