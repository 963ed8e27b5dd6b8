--[[
  redlock/release: release the lock on this server if it is ours, and notify the waiters.

  This also undoes an attempt that failed, or that may not have reached this server. A client that gets the message
  tries again. No server of a quorum can hand a lock over, because it does not know which claims hold the other
  servers.

  KEYS[1] lock     string, owner id of the holder on this server; expires with its lease
  ARGV[1] owner    id of the attempt
  ARGV[2] channel  channel of this lock's waiters; the message is the owner whose hold has ended
  REPLY   {1, listeners}  released; listeners is the number of connections that got the message
          {2}             unheld: it had ended, or was never taken here, or was released already
]]
local owner, channel = ARGV[1], ARGV[2]

if redis.call('GET', KEYS[1]) ~= owner then
  return {2}
end
redis.call('DEL', KEYS[1])
local listeners = redis.pcall('PUBLISH', channel, owner)
return {1, type(listeners) == 'number' and listeners or 0}
