--[[
  lua/redisson-ids: permit ids, which are raw bytes on the server and hexadecimal text everywhere else.

  Client libraries differ in what they do with bytes that are no text, so they never see any.
]]
local function toBytes(id)
  return (string.gsub(id, '%x%x', function(pair) return string.char(tonumber(pair, 16)) end))
end

local function toHex(bytes)
  return (string.gsub(bytes, '.', function(byte) return string.format('%02x', string.byte(byte)) end))
end
