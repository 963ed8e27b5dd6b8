--[[
  recipes/keyed/check: whether an event must still be applied to its object. Changes nothing.

  Sent under the lease of the object, so no other caller can record an event meanwhile.

  KEYS[1] applied   hash, see recipes/keyed/record
  KEYS[2] event     string, exists while the event is remembered as applied
  ARGV[1] isNamed   1 if the event has an id, 0 if not
  ARGV[2] sequence  position in the sender's order; empty if it has none
  REPLY   {0}                new: apply it
          {1}                duplicate: it was already applied
          {2, last...}       outdated: an event with this higher sequence was already applied
]]
if ARGV[1] == '1' and redis.call('EXISTS', KEYS[2]) == 1 then
  return {1}
end
local last = redis.call('HGET', KEYS[1], 'sequence')
if ARGV[2] ~= '' and last and ARGV[2] - last < 0 then
  return {2, last}
end
return {0}
