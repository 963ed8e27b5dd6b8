--[[
  election/announce: notify all observers that the state may have changed.

  KEYS[1] lock     string, owner id of the leader; used only because a cluster server may require a key
  ARGV[1] channel  channel of the observers
  REPLY   1        announced
]]
redis.call('EXISTS', KEYS[1])
redis.call('PUBLISH', ARGV[1], 'changed')
return 1
