--[[
  permits/reclaim: restore permits that a failover lost although their lease is still valid.

  Works only while this server must not grant, as in mutex/reclaim. The caller's lease is valid, so its permits are put
  back even if the server's data shows no room for them. That data may be out of date and list holders that have already
  released their permits. Such holders disappear when their leases end. Until then, the permits in use may exceed the
  capacity, and nothing is granted. A slot number belongs to one holder at a time. So if the data assigns one of the
  caller's numbers to a holder with a lower token, that holder has already released its permits.

  KEYS[1] state     hash: capacity, declared, used, top, free, first, until, keepMs; owner -> grant of each holder
  KEYS[2] fence     string, last token issued
  KEYS[3] holders   sorted set, owner of a holder -> end of its lease, in microseconds of the server's clock
  KEYS[4] slots     sorted set, free slot numbers below top
  KEYS[5] queue     sorted set, owner of a waiting claim -> arrival number
  KEYS[6] marker    hash; its field `run` is the run of this server that may grant
  ARGV[1] owner     id of the claim that was granted
  ARGV[2] token     token of the grant
  ARGV[3] leaseMs   length of the lease, counted from now
  ARGV[4] weight    number of permits that the claim holds
  ARGV[5] numbers   slot numbers of its permits, separated by commas; empty if they have none
  ARGV[6] declared  the capacity that this client was configured with
  RENEWS
  REPLY   0         refused: this server lost nothing, or another claim has been granted since
          1         reclaimed
]]
local owner, token, leaseMs = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local weight, numbers = tonumber(ARGV[4]), ARGV[5]

-- include run-id
-- include permits-state
-- include permits
local run = runId(redis.pcall('INFO', 'server'), redis.pcall('INFO', 'replication'))
if not run or redis.call('HGET', KEYS[6], 'run') == run then
  return 0
end
if record and token - string.match(record, '/(%d+)') < 0 then
  return 0
end

local stale = {}
if numbers ~= '' then
  local grants = redis.call('HGETALL', KEYS[1])
  for i = 1, #grants, 2 do
    local other, theirs = string.match(grants[i + 1], '^%d+/(%d+)/([%d,]+)')
    if other and grants[i] ~= owner and string.match(grants[i], '^[^/]+/%d+/%d+/') then
      for slot in string.gmatch(theirs, '%d+') do
        if string.find(',' .. numbers .. ',', ',' .. slot .. ',', 1, true) then
          if other - token > 0 then
            return 0
          end
          stale[grants[i]] = grants[i + 1]
        end
      end
    end
  end
end

if capacity == 0 then
  begin(ARGV[6], ',' .. ARGV[6] .. ',')
end
mend()
if record then
  giveBack(owner, record)
end
for holder, grant in pairs(stale) do
  giveBack(holder, grant)
end
for slot in string.gmatch(numbers, '%d+') do
  if slot - top < 0 then
    free = free - redis.call('ZREM', KEYS[4], slot)
  else
    for gap = top, slot - 1 do
      redis.call('ZADD', KEYS[4], gap, gap)
      free = free + 1
    end
    top = slot + 1
  end
end

local ends = now + leaseMs * 1000
if used == 0 or ends < first then
  first = ends
end
used = used + weight
redis.call('HSET', KEYS[1], owner, string.format('%.0f/%.0f/', weight, token) .. numbers,
  'used', used, 'top', top, 'free', free, 'first', first)
lengthen(leaseMs)
keepLease(owner, ends)
if free > 0 then
  redis.call('PEXPIRE', KEYS[4], keptMs())
end
redis.call('SET', KEYS[2], math.max(token, tonumber(redis.call('GET', KEYS[2]) or 0)), 'PX', keptMs())
redis.call('ZREM', KEYS[5], owner)
return 1
