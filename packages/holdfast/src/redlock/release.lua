--[[
  redlock/release: give the lock back on this server, if it is ours, and tell those who wait.

  Also what undoes an attempt that failed, or of which nobody knows whether it came here. Whoever hears the message
  tries again; no server of a quorum can hand a lock over by itself, because it does not know who has the others.

  KEYS[1] lock     string, owner of the claim that holds on this server; expires with its lease
  ARGV[1] owner    id of the attempt
  ARGV[2] channel  what the waiters of this name listen on; the message is the owner whose hold has ended
  REPLY   {1, listeners}  released; so many connections heard of it
          {2}             unheld: it had ended, or was never taken here, or is given back already
]]
local owner, channel = ARGV[1], ARGV[2]

if redis.call('GET', KEYS[1]) ~= owner then
  return {2}
end
redis.call('DEL', KEYS[1])
local listeners = redis.pcall('PUBLISH', channel, owner)
return {1, type(listeners) == 'number' and listeners or 0}
