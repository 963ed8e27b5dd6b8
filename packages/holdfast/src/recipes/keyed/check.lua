--[[
  recipes/keyed/check: whether an event is still to be applied to its object. Changes nothing.

  Asked under the lease of the object: nobody else can record anything meanwhile.

  KEYS[1] applied   hash, see recipes/keyed/record
  KEYS[2] event     string, there while the event is known to have been applied
  ARGV[1] isNamed   1 if the event has an id, 0 if not
  ARGV[2] sequence  its place in the sender's order; empty if it has none
  REPLY   {0}                new: it is to be applied
          {1}                duplicate: it has been
          {2, last...}       outdated: a later one has been, of that sequence
]]
if ARGV[1] == '1' and redis.call('EXISTS', KEYS[2]) == 1 then
  return {1}
end
local last = redis.call('HGET', KEYS[1], 'sequence')
if ARGV[2] ~= '' and last and ARGV[2] - last < 0 then
  return {2, last}
end
return {0}
