--[[
  lua/permits-state: read the current permits of one name.

  Also reads `record`, the grant of the local `owner`. A script without an owner sets `owner` to `''`. A grant is
  `<weight>/<token>/<slot>,<slot>…`, followed by `/<first token>/<number of the change>` after a change of weight. A
  grant by message that is not confirmed yet ends in `/!`.

  Invariants:
  - `used` is the sum of the weights of all grants in KEYS[1].
  - The holders in KEYS[1] are those in KEYS[3].
  - KEYS[4] contains the slot numbers below `top` that no grant has. `free` is how many there are.
  - No lease ends before `first`, so no script searches for expired leases until then.
  - No key expires before `until`, or before a lease in it ends.
  - The member `-` of KEYS[3] is a placeholder that never expires. It keeps the key and its expiry while holders come
    and go.

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
