--[[
  redlock-compat/lock/acquire: lock all resources if each is free; otherwise lock none.

  This is one atomic step, so that no client sees only some of them locked. The lock of a resource is the key with its
  name, as redlock 5 writes it. A repeated request with the same value gets the lock again, because the first reply may
  have been lost. It leaves the expiry as it is, because it may be a late copy that arrives after an extension.

  For the resources, the script uses only commands that redlock 5 uses, so that a Redis user who may run the scripts of
  redlock 5 may also run this one. It reads the time before it writes anything, because a user who may not read the time
  gets the lock without fences.

  The number of resources differs between calls, so this script computes the n of KEYS[n].

  ARGV[1]   value     random text of this lock
  ARGV[2]   duration  length of the lock
  ARGV[3]   fences    how many of the keys are fences: 0, or one for each resource
  ARGV[4]   fenceMs   expiry of the fences
  KEYS[...] keys      the resources, each a string with the value of its lock, which expires; then the fences, each a
                      string with the last token of a resource
  GRANTS  by itself
  REPLY     locked      counted, without fences: the number of resources, or 0 if one of them is locked by another value
            {1, token}  granted, with fences; the token is the server's time in microseconds, or the highest last token
                        + 1 if that is higher
]]
local value, duration, fences = ARGV[1], ARGV[2], tonumber(ARGV[3])
local count = #KEYS - fences

for i = 1, count do
  -- A key of another type counts as locked.
  if redis.call('EXISTS', KEYS[i]) == 1 and redis.pcall('GET', KEYS[i]) ~= value then
    return 0
  end
end

local token
if fences > 0 then
  local time = redis.call('TIME')
  token = time[1] * 1000000 + time[2]
end
for i = count + 1, count + fences do
  local last = tonumber(redis.call('GET', KEYS[i]) or 0)
  if last >= token then
    token = last + 1
  end
end

for i = 1, count do
  if redis.call('EXISTS', KEYS[i]) == 0 then
    redis.call('SET', KEYS[i], value, 'PX', duration)
  end
end
if fences == 0 then
  return count
end
for i = count + 1, count + fences do
  redis.call('SET', KEYS[i], string.format('%.0f', token), 'PX', ARGV[4])
end
return {1, token}
