--[[
  lua/recall: ask a holder that may retain the mutex to release it.

  A claim that may be retained reserves an odd number of tokens, 31 or more; see docs/adr/146. No other claim does, so
  no message is sent for other holders. If the holder is not subscribed, the message is lost, and the holder's own
  clocks end the retention.

  Needs the locals `inbox` and `holder`. The functions that send messages are not included, because most calls of
  mutex/acquire on a busy lock end after this.
]]
local client, number = string.match(holder, '^([^/]+)/(%d+)/%d+/%d+[13579]/')
if client then
  redis.pcall('PUBLISH', (string.gsub(inbox, '{[^}]*}:$', '')) .. client, '~' .. number)
end
