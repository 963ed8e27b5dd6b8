--[[
  recipes/coalesce/heed: whether a claim has asked the current run to end. Changes nothing.

  KEYS[1] run    hash, see recipes/coalesce/acquire
  ARGV[1] owner  id of the claim that runs
  REPLY   {0}         wanted: no claim has asked
          {1, by...}  cancelled: owner of the claim that has asked
]]
local run = redis.call('HMGET', KEYS[1], 'granted', 'cancel')
if run[1] == ARGV[1] and run[2] then
  return {1, run[2]}
end
return {0}
