--[[
  redlock-compat/lock/extend: set how long the lock lasts from now, if all resources still have its value.

  This is one atomic step, so that a lock never lasts longer on one resource than on another. The expiry of a fence is
  also set with SET, because a Redis user who may run the scripts of redlock 5 may use that command.

  ARGV[1]   value     random text of the lock
  ARGV[2]   duration  length of the lock, counted from now
  ARGV[3]   fences    how many of the keys are fences: 0, or one for each resource
  ARGV[4]   fenceMs   expiry of the fences
  KEYS[...] keys      the resources, each a string with the value of its lock, which expires; then the fences, each a
                      string with the last token of a resource
  REPLY     extended  counted: the number of resources, or 0 if one of them is free or locked by another value
]]
local value, duration, fences = ARGV[1], ARGV[2], tonumber(ARGV[3])
local count = #KEYS - fences

for i = 1, count do
  if redis.pcall('GET', KEYS[i]) ~= value then
    return 0
  end
end
for i = 1, count do
  redis.call('SET', KEYS[i], value, 'PX', duration)
end
for i = count + 1, count + fences do
  local last = redis.call('GET', KEYS[i])
  if last then
    redis.call('SET', KEYS[i], last, 'PX', ARGV[4])
  end
end
return count
