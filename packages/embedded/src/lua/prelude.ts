/**
 * The global environment of scripts, as a Lua chunk that runs once in a new interpreter.
 *
 * It contains only names that exist in both the server's Lua 5.1 and the Lua 5.4 used here, so a script that runs here
 * also finds all its names on a server. It contains nothing that reads a clock, a random source or a file. A script
 * gets `env` as its globals. It can read the names in `base` through `env` but cannot change them, so no script leaves
 * state for the next one.
 *
 * ARGUMENTS call, pcall: the two functions that run commands
 * RETURNS base: the table that KEYS and ARGV are set in; env; explain: a message handler for uncaught errors
 */
export const PRELUDE = `
local call, protectedCall = ...
local error, getinfo, rawpcall, rawset, setmetatable, type = error, debug.getinfo, pcall, rawset, setmetatable, type
local find, tostring = string.find, tostring

local frozen = setmetatable({}, { __mode = "k" })

local function refuse()
  error("Attempt to modify a readonly table", 2)
end

local function freeze(content, absent)
  if absent then setmetatable(content, { __index = absent }) end
  local face = setmetatable({}, { __index = content, __newindex = refuse, __metatable = false })
  frozen[face] = true
  return face
end

local function pick(library, names)
  local picked = {}
  for name in string.gmatch(names, "%w+") do picked[name] = library[name] end
  return freeze(picked)
end

local base = {
  assert = assert, error = error, getmetatable = getmetatable, ipairs = ipairs, next = next, pairs = pairs,
  rawequal = rawequal, rawget = rawget, select = select, setmetatable = setmetatable, tonumber = tonumber,
  tostring = tostring, type = type, xpcall = xpcall, _VERSION = "Lua 5.1",
  string = pick(string, "byte char find format gmatch gsub len lower match rep reverse sub upper"),
  table = pick(table, "concat insert remove sort"),
  math = pick(math, "abs acos asin atan ceil cos deg exp floor fmod huge log max min modf pi rad sin sqrt tan"),
}

function base.rawset(target, key, value)
  if frozen[target] then error("Attempt to modify a readonly table", 0) end
  return rawset(target, key, value)
end

-- On a server, a script that catches an error from a command gets only its text, although the error was a table.
local function settle(ok, first, ...)
  if not ok and type(first) == "table" and first.err then return false, first.err end
  return ok, first, ...
end

function base.pcall(...)
  return settle(rawpcall(...))
end

local function errorReply(text)
  if type(text) ~= "string" then return { err = "ERR wrong number or type of arguments" } end
  if string.sub(text, 1, 1) == "-" then text = string.sub(text, 2) end
  return { err = find(text, " ", 1, true) and text or "ERR " .. text }
end

base.redis = freeze({
  call = call,
  pcall = protectedCall,
  error_reply = errorReply,
  status_reply = function(text) return { ok = text } end,
})

local strings = getmetatable("")
strings.__index, strings.__metatable = base.string, false

local env = freeze(base, function(_, name)
  error("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
end)
base._G = env

local function explain(problem)
  -- The stack may have C functions and functions of this chunk above the script's own function.
  local level, where = 2, getinfo(2, "Sl")
  while where and where.source ~= "@user_script" do
    level = level + 1
    where = getinfo(level, "Sl")
  end
  local line = where and where.currentline or -1
  local message = type(problem) == "table" and problem.err or "ERR " .. tostring(problem)
  return tostring(line) .. " " .. tostring(message)
end

return base, env, explain
`;
