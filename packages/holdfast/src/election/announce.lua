--[[
  election/announce: tell all who observe that they are to look again.

  KEYS[1] lock     string, owner of the claim that leads. It is looked at so that a server of a cluster, which may ask for a key,
                   runs the script
  ARGV[1] channel  where observers listen
  REPLY   1        announced
]]
redis.call('EXISTS', KEYS[1])
redis.call('PUBLISH', ARGV[1], 'changed')
return 1
