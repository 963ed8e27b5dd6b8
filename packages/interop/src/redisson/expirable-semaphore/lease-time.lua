--[[
  interop/redisson/expirable-semaphore/lease-time: return the remaining lease of any client's permit.

  KEYS[1] timeout     sorted set, id of a permit, 16 bytes -> end of its lease in ms, 922337203685477 if it never ends
  ARGV[1] id          id of the permit, 32 hexadecimal digits
  REPLY   {0, value}  held: remaining ms
          1           endless: held, and its lease never ends
          2           gone: the permit is not held
]]
local id = ARGV[1]

-- include redisson-ids
local ends = redis.call('ZSCORE', KEYS[1], toBytes(id))
local time = redis.call('TIME')
local leftMs = (ends or 0) - (time[1] * 1000 + math.floor(time[2] / 1000))
if leftMs <= 0 then
  return 2
end
if tonumber(ends) >= 922337203685477 then
  return 1
end
return {0, leftMs}
