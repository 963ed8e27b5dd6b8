--[[
  lua/permits-paused: the pause that has all permits, or stands at the head of their queue until whoever holds now is done.

  As lua/paused. A pause has so many permits that no others can ever come to that.

  Needs lua/permits-state. Uses KEYS[3] holders, KEYS[5] queue. Each returns the pause, or nothing; one whose end has passed is
  none.
]]
local function pauseThatHolds()
  if used >= 1000000000 then
    for _, holder in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
      if string.find(holder, '^pause/') then
        return holder
      end
    end
  end
end

local function pauseAtHead()
  if redis.call('PTTL', KEYS[5]) > 60000 then
    local head = redis.call('ZRANGE', KEYS[5], 0, 0)[1]
    local untilMs = string.match(head, '^pause/%d+/(%d+)/')
    if untilMs and untilMs - now / 1000 > 0 then
      return head
    end
  end
end
