--[[
  recipes/counter/change: take from a count or add to it, within its limits, once for each request.

  One script reads, compares and writes, so no other caller can interfere and no lock is needed. A repeated request,
  whether after a lost reply or after a restart of its caller, gets the reply of the first one and changes nothing.

  KEYS[1] count    string: a whole number; absent means 0
  KEYS[2] request  string: the change that this request asked for, a space, and the result: the count afterward, or none
  ARGV[1] change   what to add; negative to take
  ARGV[2] min      minimum count that a take may leave
  ARGV[3] max      maximum count
  ARGV[4] keepMs   how long the request is remembered
  REPLY   {1, left}       changed: now, or when the same request was first sent
          {2}             short: there is not enough, now or when the same request was first sent; nothing was taken
          {3, change}     another: the request id was used before, for this other change
          {4, left}       over: the count would exceed max, so nothing was added; left is the current count
]]
local change, min, max, keepMs = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4]

local known = redis.call('GET', KEYS[2])
if known then
  local at = string.find(known, ' ', 1, true)
  local asked, answer = string.sub(known, 1, at - 1), string.sub(known, at + 1)
  if asked ~= change then
    return {3, tonumber(asked)}
  end
  if answer == 'none' then
    return {2}
  end
  return {1, tonumber(answer)}
end

local before = tonumber(redis.call('GET', KEYS[1]) or '0')
local left = before + tonumber(change)
if left > max then
  return {4, before}
end
if left < before and left < min then
  redis.call('PSETEX', KEYS[2], keepMs, change .. ' none')
  return {2}
end
local text = string.format('%.0f', left)
redis.call('SET', KEYS[1], text)
redis.call('PSETEX', KEYS[2], keepMs, change .. ' ' .. text)
return {1, left}
