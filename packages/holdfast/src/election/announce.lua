--[[
  election/announce: tell all who observe that the leader may have changed. A hint; they look for themselves.

  ARGV[1] channel  where observers listen
  REPLY   1        announced
]]
redis.call('PUBLISH', ARGV[1], 'changed')
return 1
