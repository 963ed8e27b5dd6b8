--[[
  redlock/release: release the lock on this server if it is ours, and notify the waiters.

  This also undoes an attempt that failed, or that may not have reached this server. A client that receives the message
  tries again. A single server cannot hand the lock over, because it does not know which claim holds the lock on the
  other servers.

  KEYS[1] lock     string, owner id of the holder on this server; expires with its lease
  ARGV[1] owner    id of the attempt
  ARGV[2] channel  channel of this lock's waiters, or the holder's inbox if force-released; the message is the owner id
  REPLY   {1, listeners}  released; listeners is the number of connections that got the message
          {2}             unheld: the lease had ended, was never granted here, or was already released
]]
local owner, channel = ARGV[1], ARGV[2]

if redis.call('GET', KEYS[1]) ~= owner then
  return {2}
end
redis.call('DEL', KEYS[1])
local listeners = redis.pcall('PUBLISH', channel, owner)
return {1, type(listeners) == 'number' and listeners or 0}
