--[[
  recipes/once/inspect: the state of a call. Changes nothing.

  KEYS[1] record  hash, see recipes/once/begin
  REPLY   {0}                                                           none
          {1, token, attempt, firstMs, sinceMs, leaseLeftMs, endedMs, words...}  known: the state and the owner;
                                                                                 leaseLeftMs is 0 if it is not running,
                                                                                 endedMs if it has not ended
]]
local record = redis.call('HMGET', KEYS[1], 'state', 'owner', 'until', 'token', 'attempt', 'first', 'since', 'ended')
if not record[1] then
  return {0}
end
local time = redis.call('TIME')
local leftMs = 0
if record[1] == 'running' then
  leftMs = math.max(0, math.ceil((record[3] - (time[1] * 1000000 + time[2])) / 1000))
end
return {1, tonumber(record[4]), tonumber(record[5]), tonumber(record[6]), tonumber(record[7]), leftMs, tonumber(record[8] or 0), record[1], record[2]}
