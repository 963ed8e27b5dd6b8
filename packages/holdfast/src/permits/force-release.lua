--[[
  permits/force-release: take permits away from the holder that the caller has seen, and tell that holder.

  The caller names the holder by owner, by token, or by both, and nothing happens if it has changed meanwhile. The
  fence moves even when nobody waits, so that the old holder's own release learns that it was too late.

  KEYS[1] state     hash: capacity, declared, used, top, free, first, until, keepMs; owner -> grant of each holder
  KEYS[2] fence     string, last token issued
  KEYS[3] holders   sorted set, owner of a holder -> end of its lease, in microseconds of the server's clock
  KEYS[4] slots     sorted set, free slot numbers below top
  KEYS[5] queue     sorted set, owner of a waiting claim -> arrival number
  KEYS[6] pause     string, the pause that keeps everybody from being granted; expires at its end
  ARGV[1] owner     whose hold to end; empty to go by the token alone
  ARGV[2] token     which grant to end; empty to go by the owner alone
  ARGV[3] inbox     what a client id is appended to for the channel that the client listens on
  ARGV[4] numbered  the heaviest grant whose permits are numbered; 0 for none
  ARGV[5] note      what the holder is told beside; empty for nothing
  GRANTS  by hand-off
  REPLY   0         unchanged: no such holder, or its grant is another one by now
          1         released
]]
local owner, token, inbox, numbered, note = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5]

-- include tell
-- include tell-holder
-- include permits-state
-- include permits
-- include permits-grant
-- A full server accepts this first write, and then the others (docs/adr/135).
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
      tellHolder(inbox, client, '-' .. number .. note)
    end
    return 1
  end
end
grantHeads()
return 0
