--[[
  recipes/coalesce/leave: stop waiting; if the claim was granted meanwhile, release it and grant the next claim.

  KEYS[1] lock     string, owner of the claim that runs
  KEYS[2] fence    string, last token issued
  KEYS[3] waiting  sorted set, see recipes/coalesce/acquire
  KEYS[4] joining  sorted set, see recipes/coalesce/acquire
  KEYS[5] run      hash, see recipes/coalesce/acquire
  ARGV[1] owner    id of the claim that gives up
  ARGV[2] inbox    prefix of inbox channels; a client id is appended to get the channel of that client
  GRANTS  by hand-off
  REPLY   0        absent: the claim neither waited nor ran
          1        left
          2        released the grant
]]
local owner, inbox = ARGV[1], ARGV[2]

-- include notify
-- include coalesce-next
local hasLeft = redis.call('ZREM', KEYS[3], owner) + redis.call('ZREM', KEYS[4], owner)
if redis.call('GET', KEYS[1]) == owner then
  local time = redis.call('TIME')
  if not handOff(inbox, time[1] * 1000000 + time[2]) then
    redis.call('DEL', KEYS[1])
  end
  return 2
end
return math.min(hasLeft, 1)
