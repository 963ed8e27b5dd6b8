--[[
  lua/recall: ask a holder that may retain the mutex to release it.

  A claim that may be retained reserves an odd number of tokens, 31 or more; see docs/adr/146. No other claim does, so
  no message is sent to other holders. If the holder is not subscribed, the message is lost, and the retention ends
  when its time runs out by the holder's own clocks.

  Needs the locals `inbox` and `holder`. Does not use lua/notify or lua/notify-holder, because most calls to
  mutex/acquire on a busy lock end after this and would define the functions of those files for nothing.
]]
local client, number = string.match(holder, '^([^/]+)/(%d+)/%d+/%d+[13579]/')
if client then
  redis.pcall('PUBLISH', (string.gsub(inbox, '{[^}]*}:$', '')) .. client, '~' .. number)
end
