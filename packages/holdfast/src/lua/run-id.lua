--[[
  lua/run-id: the id of this run of this server, which no other server and no other run has.

  Returns false where the server does not show it.
]]
local function runId(info)
  return type(info) == 'string' and string.match(info, 'run_id:(%x+)') or false
end
