--[[
  permits/inspect: the capacity, the holders and the waiters. Changes nothing.

  Omits leases that have ended, even if their permits have not been taken back yet.

  KEYS[1] state    hash: capacity, declared, used, top, free, first, until, keepMs; owner -> grant of each holder
  KEYS[2] fence    string, last token issued
  KEYS[3] holders  sorted set, owner of a holder -> end of its lease, in microseconds of the server's clock
  KEYS[4] queue    sorted set, owner of a waiting claim -> arrival number
  KEYS[5] pause    string, the current pause, during which nothing is granted; expires at its end
  ARGV[1] owner    claim whose place in the queue to report; empty for none
  ARGV[2] most     maximum number of waiters to list, 1 or more
  ARGV[3] mostHeld maximum number of holders to list, 1 or more
  REPLY   {0, capacity, used, token, waiters, ahead, named, rest...}  seen; capacity is 0 if none is on record;
                   token is 0 if there was none; ahead is the number of waiters before the claim, -1 if it is not
                   waiting; rest contains the pause (empty if there is none), then owner, grant and remaining lease
                   in ms of `named` holders, then the waiters
]]
local owner, most, mostHeld = ARGV[1], ARGV[2], ARGV[3]

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local used = tonumber(redis.call('HGET', KEYS[1], 'used') or 0)
for _, holder in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now, 'LIMIT', 0, 1000)) do
  used = used - string.match(redis.call('HGET', KEYS[1], holder) or '0', '^%d+')
end
local reply = {
  0,
  tonumber(redis.call('HGET', KEYS[1], 'capacity') or 0),
  used,
  tonumber(redis.call('GET', KEYS[2]) or 0),
  redis.call('ZCARD', KEYS[4]),
  owner ~= '' and redis.call('ZRANK', KEYS[4], owner) or -1,
  0,
  redis.call('GET', KEYS[5]) or ''
}
local holders = redis.call('ZRANGEBYSCORE', KEYS[3], now + 1, '(inf', 'WITHSCORES', 'LIMIT', 0, mostHeld)
for i = 1, #holders, 2 do
  local grant = redis.call('HGET', KEYS[1], holders[i])
  if grant then
    reply[7] = reply[7] + 1
    reply[#reply + 1] = holders[i]
    reply[#reply + 1] = grant
    reply[#reply + 1] = math.ceil((holders[i + 1] - now) / 1000)
  end
end
for _, waiter in ipairs(redis.call('ZRANGE', KEYS[4], 0, most - 1)) do
  reply[#reply + 1] = waiter
end
return reply
