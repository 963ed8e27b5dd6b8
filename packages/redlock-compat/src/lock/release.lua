--[[
  redlock-compat/lock/release: free the resources that still have the value of the lock, and notify waiters.

  Clients of the original redlock neither publish nor subscribe, and find a free resource by polling. A message that
  cannot be published does not make the release fail, because waiters poll too.

  ARGV[1]   value     random text of the lock
  ARGV[2]   channels  channels of the waiters for the resources, separated by spaces, which no channel contains; empty
                      to notify no waiters
  ARGV[3]   fences    how many of the keys are fences: 0, or one for each resource
  ARGV[4]   fenceMs   expiry of the fences
  KEYS[...] keys      the resources, each a string with the value of its lock, which expires; then the fences, each a
                      string with the last token of a resource
  REPLY     freed     counted: the number of resources that had the value
]]
local value, fences = ARGV[1], tonumber(ARGV[3])
local count = #KEYS - fences

local freed = 0
for i = 1, count do
  if redis.pcall('GET', KEYS[i]) == value then
    redis.call('DEL', KEYS[i])
    freed = freed + 1
  end
end
if freed > 0 then
  for channel in string.gmatch(ARGV[2], '%S+') do
    redis.pcall('PUBLISH', channel, value)
  end
  for i = count + 1, count + fences do
    local last = redis.call('GET', KEYS[i])
    if last then
      redis.call('SET', KEYS[i], last, 'PX', ARGV[4])
    end
  end
end
return freed
