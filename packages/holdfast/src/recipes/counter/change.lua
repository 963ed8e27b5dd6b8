--[[
  recipes/counter/change: take from a count or put to it, unless it would go below its least, once for each request.

  Look, compare and write are one step, so nobody else is in between, and no lock is needed. A request that comes again, be it
  for a lost reply or because its caller was started anew, gets the answer of the first time and changes nothing.

  KEYS[1] count    string: a whole number; absent is 0
  KEYS[2] request  string: what this request asked for, a space, and what it was answered: the number left, or none
  ARGV[1] change   what is added; negative to take
  ARGV[2] min      the least that may be left after something was taken
  ARGV[3] max      the most that there may be
  ARGV[4] keepMs   how long the request is remembered
  REPLY   {1, left}       changed: now, or by the same request before
          {2}             short: there is not enough, and nothing was taken; now, or when the same request came before
          {3, change}     another: that request has asked for another change before, this one
          {4, left}       over: there would be more than max, and nothing was put; what there is
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
