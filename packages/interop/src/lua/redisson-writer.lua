--[[
  lua/redisson-writer: notify the waiters of the end of a write hold, and end the write hold of one owner.

  Redisson's own message, 1, wakes only the threads that are already asleep. A thread that was refused but is not asleep
  yet misses the message and then sleeps until the lease would have ended. The message 0 is kept for the next thread
  that goes to sleep. So 1 wakes all sleeping threads, and the 0 after it wakes the one in between.

  An owner that has read under its own write lock keeps reading, and other readers may join. So waiting readers are
  also woken, which Redisson omits. KEYS[1] is the hash.
]]
local function publishWriteEnd(channel, how)
  publish(how, channel, '1')
  publish(how, channel, '0')
end

local function endWrite(writer, channel, how)
  publishWriteEnd(channel, how)
  redis.call('HDEL', KEYS[1], writer)
  if redis.call('HLEN', KEYS[1]) == 1 then
    redis.call('DEL', KEYS[1])
  else
    redis.call('HSET', KEYS[1], 'mode', 'read')
  end
end
