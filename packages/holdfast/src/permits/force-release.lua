--[[
  permits/force-release: take permits away from a specific holder, and notify that holder.

  The caller names the holder by owner, by token, or by both. Nothing happens if the holder has changed. The fence is
  raised even if no claim is waiting. So the reply to a late release by the old holder says that another claim may have
  been granted.

  KEYS[1] state     hash: capacity, declared, used, top, free, first, until, keepMs; owner -> grant of each holder
  KEYS[2] fence     string, last token issued
  KEYS[3] holders   sorted set, owner of a holder -> end of its lease, in microseconds of the server's clock
  KEYS[4] slots     sorted set, free slot numbers below top
  KEYS[5] queue     sorted set, owner of a waiting claim -> arrival number
  KEYS[6] pause     string, the current pause, during which nothing is granted; expires at its end
  ARGV[1] owner     id of the claim that holds the permits; empty to identify it by the token only
  ARGV[2] token     token of its grant; empty to identify it by the owner only
  ARGV[3] inbox     prefix of inbox channels: the channel of a client is this plus its client id
  ARGV[4] numbered  grants up to this weight get slot numbers; 0 for none
  ARGV[5] note      text appended to the message to the holder; may be empty
  GRANTS  by hand-off
  REPLY   0         unchanged: no such holder, or it has another grant now
          1         released
]]
local owner, token, inbox, numbered, note = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]

-- include notify
-- include notify-holder
-- include permits-state
-- include permits
-- include permits-grant
-- Do this write first. The server accepts it even when out of memory, and then accepts all later writes of this
-- script (docs/adr/135).
redis.call('HDEL', KEYS[1], '')
reap()
local holders = owner == '' and redis.call('ZRANGE', KEYS[3], 0, 9999) or {owner}
for _, holder in ipairs(holders) do
  local grant = redis.call('HGET', KEYS[1], holder)
  if grant and (token == '' or token - string.match(grant, '/(%d+)') == 0) then
    giveBack(holder, grant)
    redis.call('SET', KEYS[2], nextToken(), 'PX', keptMs())
    lastToken = nextToken()
    grantHeads()
    local client, number = string.match(holder, '^([^/]+)/(%d+)/%d+/%d+')
    if client then
      notifyHolder(inbox, client, '-' .. number .. note)
    end
    return 1
  end
end
grantHeads()
return 0
