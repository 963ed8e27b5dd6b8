--[[
  lua/redisson-writer: end the write hold of one owner.

  Whoever has read under its own write lock goes on reading, and then readers may join: they are woken as well, which
  Redisson leaves out. KEYS[1] is the hash.
]]
local function endWrite(writer, channel, how)
  publish(how, channel, '1')
  redis.call('HDEL', KEYS[1], writer)
  if redis.call('HLEN', KEYS[1]) == 1 then
    redis.call('DEL', KEYS[1])
  else
    redis.call('HSET', KEYS[1], 'mode', 'read')
  end
end
