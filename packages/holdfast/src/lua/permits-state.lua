--[[
  lua/permits-state: the permits of one name as they stand.

  Read once, together with the grant of the local `owner` (an empty one if the script has none), which is `record`.
  A grant is `<weight>/<token>/<slot>,<slot>…`, and after a change of weight also `/<first token>/<number of the
  change>`. One that was made by message and is not confirmed yet ends in `/!`.

  Invariants: `used` is the sum of the weights of all grants in KEYS[1], which are those in KEYS[3]; slot numbers
  below `top` that no grant has are the `free` members of KEYS[4]; no lease ends before `first`, so that nothing
  need be looked for until then; no key goes before a lease in it ends, and none before `until`. The member `-` of
  KEYS[3], which never ends, is nobody: it keeps the key, and with it the expiry, while holders come and go.

  Uses KEYS[1] state.
]]
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local state = redis.call('HMGET', KEYS[1],
  'capacity', 'declared', 'used', 'top', 'free', 'first', 'until', 'keepMs', owner)
local capacity, used = tonumber(state[1] or 0), tonumber(state[3] or 0)
local top, free = tonumber(state[4] or 0), tonumber(state[5] or 0)
local first = tonumber(state[6] or 0)
local keepUntil, keepMs = tonumber(state[7] or 0), tonumber(state[8] or 600000)
local record = state[9]
