--[[
  lua/redisson-ids: convert permit ids, which are raw bytes on the server and hexadecimal text everywhere else.

  Client libraries differ in how they treat bytes that are not text, so these bytes never reach them.
]]
local function toBytes(id)
  return (string.gsub(id, '%x%x', function(pair) return string.char(tonumber(pair, 16)) end))
end

local function toHex(bytes)
  return (string.gsub(bytes, '.', function(byte) return string.format('%02x', string.byte(byte)) end))
end
