--[[
  recipes/keyed/record: record that an event was applied, if its object still belongs to this claim.

  One script checks the holder and records the event, so a late holder records nothing. A retry gets the same reply,
  because the script recognizes its own record by the token.

  KEYS[1] lock      string of the mutex, owner of the claim that holds it
  KEYS[2] fence     string of the mutex, last token issued
  KEYS[3] applied   hash: sequence (the highest applied), token (of the grant that last recorded an event)
  KEYS[4] event     string, token of the grant under which the event was applied
  ARGV[1] owner     id of the claim
  ARGV[2] token     token of its grant
  ARGV[3] isNamed   1 if the event has an id, 0 if not
  ARGV[4] sequence  position in the sender's order; empty if it has none
  ARGV[5] keepMs    how long the event is remembered
  REPLY   1  recorded
          2  lost: the object no longer belongs to the claim
]]
local owner, token, isNamed, sequence, keepMs = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]

if redis.call('HGET', KEYS[3], 'token') == token or (isNamed == '1' and redis.call('GET', KEYS[4]) == token) then
  return 1
end
local last = redis.call('GET', KEYS[2])
if redis.call('GET', KEYS[1]) ~= owner or (last and last - token ~= 0) then
  return 2
end
local restMs = redis.call('PTTL', KEYS[3])
redis.call('HSET', KEYS[3], 'token', token)
if sequence ~= '' then
  redis.call('HSET', KEYS[3], 'sequence', sequence)
end
if restMs - keepMs < 0 then
  redis.call('PEXPIRE', KEYS[3], keepMs)
end
if isNamed == '1' then
  redis.call('SET', KEYS[4], token, 'PX', keepMs)
end
return 1
