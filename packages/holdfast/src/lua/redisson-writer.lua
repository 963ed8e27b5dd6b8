--[[
  lua/redisson-writer: tell those who wait for a writer's end, and end the write hold of one owner.

  Redisson's own message, 1, wakes only the threads that sleep already: one that has asked and was refused, but does not sleep
  yet, never hears of it, and then sleeps for as long as the lock had left. 0 is kept for the next that goes to sleep. So 1
  is for all, and 0 after it for the one in between.

  Whoever has read under its own write lock goes on reading, and then readers may join: they are woken as well, which
  Redisson leaves out. KEYS[1] is the hash.
]]
local function tellOfWriter(channel, how)
  publish(how, channel, '1')
  publish(how, channel, '0')
end

local function endWrite(writer, channel, how)
  tellOfWriter(channel, how)
  redis.call('HDEL', KEYS[1], writer)
  if redis.call('HLEN', KEYS[1]) == 1 then
    redis.call('DEL', KEYS[1])
  else
    redis.call('HSET', KEYS[1], 'mode', 'read')
  end
end
