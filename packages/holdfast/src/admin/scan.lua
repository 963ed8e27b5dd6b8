--[[
  admin/scan: return one page of this server's keys that identify a lock or another record. Read-only.

  SCAN runs in a script for two reasons: every store can run scripts on every server that has locks, and the server does
  not have to send the many keys that do not identify a lock by themselves, such as token keys. In a cluster, the same
  call goes to all masters, and each finds its own position among the cursors. A call ends when it has found enough keys
  or has examined about 2,000, so it does not delay other clients for long.

  ARGV[1] match    pattern for SCAN
  ARGV[2] start    the part of each key before the kind
  ARGV[3] kinds    kinds to list, with a comma before and after each
  ARGV[4] text     string that the rest of the key must contain; empty for any key
  ARGV[5] free     1 to also list token keys; a free mutex has no other key
  ARGV[6] want     stop when this many keys have been found
  ARGV[7] cursors  position on each server, as " <id>=<cursor> <id>=<cursor> "; a server not listed starts at 0
  ARGV[8] many     1 in a cluster, where each server has an id; 0 for a single server, whose id is "one"
  REPLY   {0, masters, words...}  page: number of masters, 0 if unknown; words has the id of this server, its next
                                  cursor ("end" if nothing is left), and the keys
          1                       over: this server has already been read completely
]]
local match, start, kinds, text, free, want = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5] == '1', tonumber(ARGV[6])
local cursors, many = ARGV[7], ARGV[8] == '1'

local id, masters = 'one', 1
if many then
  id = redis.call('CLUSTER', 'MYID')
  local ranges = redis.pcall('CLUSTER', 'SLOTS')
  masters = 0
  local seen = {}
  for _, range in ipairs(ranges) do
    local master = range[3][3]
    if not seen[master] then
      seen[master] = true
      masters = masters + 1
    end
  end
end
local cursor = string.match(cursors, ' ' .. id .. '=(%w+) ') or '0'
if cursor == 'end' then
  return 1
end

local function standsForSomething(rest)
  local kind = string.match(rest, '^([%w-]+):')
  if not kind or not string.find(kinds, ',' .. kind .. ',', 1, true) then
    return false
  end
  if text ~= '' and not string.find(rest, text, 1, true) then
    return false
  end
  -- The first key of a lock with the `key` option lacks the prefix, so SCAN does not find it. The lock's token key has
  -- the prefix and is listed instead.
  if string.match(rest, ':fence$') then
    return free or string.match(rest, '^mutex:mapped') ~= nil
  end
  return kind == 'client' or string.match(rest, '}$') ~= nil or string.match(rest, ':queue$') ~= nil
    or string.match(rest, ':pause$') ~= nil or string.match(rest, ':waiters$') ~= nil or string.match(rest, ':condition:[^:]*$') ~= nil
end

local reply, found, looked = {0, masters, id, cursor}, 0, 0
repeat
  local count = math.max(10, math.min(500, want - found))
  local page = redis.call('SCAN', cursor, 'MATCH', match, 'COUNT', string.format('%.0f', count))
  cursor, looked = page[1], looked + count
  for _, key in ipairs(page[2]) do
    if string.sub(key, 1, #start) == start and standsForSomething(string.sub(key, #start + 1)) then
      found = found + 1
      reply[#reply + 1] = key
    end
  end
until cursor == '0' or found >= want or looked >= 2000
reply[4] = cursor == '0' and 'end' or cursor
return reply
