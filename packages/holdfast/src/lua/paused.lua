--[[
  lua/paused: the pause that stands at the head of a mutex's queue, until whoever holds now is done.

  A pause is a claim of a person, `pause/<since>/<end>/<amount>/<request>/<by>/<label>` with the times in ms since 1970: no
  process renews it, none listens for it, and nobody is granted before it. The queue in which one stands is kept for a day
  longer than that; every other one for a minute after the last waiter has asked. So most callers need not look at the head.

  Uses KEYS[3] queue. Returns the pause, or nothing; one whose end has passed is none.
]]
local function pauseAtHead(now)
  if redis.call('PTTL', KEYS[3]) > 60000 then
    local head = redis.call('ZRANGE', KEYS[3], 0, 0)[1]
    local untilMs = string.match(head, '^pause/%d+/(%d+)/')
    if untilMs and untilMs - now / 1000 > 0 then
      return head
    end
  end
end
