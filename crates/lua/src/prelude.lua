-- What Karmada's scripts find, where Lua in C has it otherwise or not at all. `native` has the functions in Rust:
-- each returns true and its results, or false and a message.
local native = ...
local error, type, select, unpack = error, type, select, unpack
local concat, following, sort = table.concat, next, table.sort
local LONGEST = 1000000

local function checked(ok, ...)
  if ok then return ... end
  error((...), 3)
end

local function raising(call)
  return function(...) return checked(call(...)) end
end

local function bounded(name, call)
  return function(text, ...)
    if type(text) ~= "string" and type(text) ~= "number" then
      error("bad argument #1 to " .. name .. " (string expected, got " .. type(text) .. ")", 2)
    end
    text = tostring(text)
    if #text > LONGEST then error("string longer than " .. LONGEST .. " bytes", 2) end
    return call(text, ...)
  end
end

tostring = raising(native.tostring)
tonumber = raising(native.tonumber)
print = function() end

for _, name in ipairs({
  "collectgarbage", "dofile", "getfenv", "getmetatable", "load", "loadfile", "loadstring", "module", "newproxy",
  "rawequal", "rawget", "rawset", "setfenv", "setmetatable",
}) do
  _G[name] = function()
    error("call function " .. name .. " is not supported in karmada customized resourceinterpreter.", 2)
  end
end
gcinfo, rawlen, coroutine, debug, io, package = nil, nil, nil, nil, nil, nil

for _, name in ipairs({ "byte", "len", "reverse", "sub" }) do
  string[name] = bounded(name, string[name])
end
for _, name in ipairs({ "find", "match", "format", "lower", "upper" }) do
  string[name] = raising(native[name])
end
for _, name in ipairs({ "dump", "gsub", "rep" }) do
  string[name] = function()
    error("The Lua function string." .. name .. " is not supported by Karmada. If you believe this function is"
      .. " essential for your use case, please submit an issue to let us know why you need it.", 2)
  end
end

string.gmatch = function(text, pattern)
  local place = checked(native.first(text, pattern))
  local function after(next, ...)
    place = next
    return ...
  end
  return function()
    if place == nil then return nil end
    return after(checked(native.occurrence(text, pattern, place)))
  end
end
string.gfind = string.gmatch

math.huge = native.largest
math.mod = function(a, b) return a % b end
math.random = function(...)
  local count = select("#", ...)
  local part = native.random()
  if count == 0 then return part end
  local first, last = ...
  if count == 1 then first, last = 1, first end
  if last < first then error("invalid argument to random", 2) end
  return first + math.floor(part * (last - first + 1))
end
math.randomseed = native.randomseed

table.foreach, table.foreachi, table.setn = nil, nil, nil

table.concat = function(list, separator, first, last)
  if type(list) ~= "table" then
    error("bad argument #1 to concat (table expected, got " .. type(list) .. ")", 2)
  end
  local count = #list
  if first ~= nil and last == nil and (first > count or first < 1) then return "" end
  first = math.max(math.min(first or 1, count), 1)
  last = math.min(last or count, count)
  local texts = {}
  for i = first, last do
    local value = list[i]
    if type(value) ~= "string" and type(value) ~= "number" then
      error("invalid value (" .. type(value) .. ") at index " .. i .. " in table for concat", 2)
    end
    texts[#texts + 1] = tostring(value)
  end
  return concat(texts, separator == nil and "" or tostring(separator))
end

table.insert = function(list, ...)
  if type(list) ~= "table" then
    error("bad argument #1 to insert (table expected, got " .. type(list) .. ")", 2)
  end
  local given, count = select("#", ...), #list
  if given == 0 then error("wrong number of arguments", 2) end
  if given == 1 then
    list[count + 1] = (...)
    return
  end
  local place, value = ...
  if place <= count and place > 0 then
    for i = count, place, -1 do list[i + 1] = list[i] end
  end
  list[place] = value
end

table.remove = function(list, place)
  if type(list) ~= "table" then
    error("bad argument #1 to remove (table expected, got " .. type(list) .. ")", 2)
  end
  local count = #list
  if count == 0 or (place ~= nil and place > count) then return nil end
  if place == nil or place < 1 then place = count end
  local removed = list[place]
  for i = place, count do list[i] = list[i + 1] end
  return removed
end

-- In Lua, so that the clock of the script is looked at while it compares.
table.sort = function(list, before)
  if type(list) ~= "table" then
    error("bad argument #1 to sort (table expected, got " .. type(list) .. ")", 2)
  end
  if before ~= nil and type(before) ~= "function" then
    error("bad argument #2 to sort (function expected, got " .. type(before) .. ")", 2)
  end
  before = before or function(a, b) return a < b end
  local from, to, count, width = list, {}, #list, 1
  while width < count do
    for left = 1, count, 2 * width do
      local middle, right = math.min(left + width, count + 1), math.min(left + 2 * width, count + 1)
      local i, j = left, middle
      for place = left, right - 1 do
        if i < middle and (j >= right or not before(from[j], from[i])) then
          to[place], i = from[i], i + 1
        else
          to[place], j = from[j], j + 1
        end
      end
    end
    from, to, width = to, from == list and {} or from, 2 * width
  end
  if from ~= list then
    for place = 1, count do list[place] = from[place] end
  end
end

local function precedes(a, b)
  local of_a, of_b = type(a), type(b)
  if of_a ~= of_b then return of_a < of_b end
  return (of_a == "number" or of_a == "string") and a < b
end

-- By key, so that a list that is made of a table is the same whenever that is.
pairs = function(table)
  if type(table) ~= "table" then
    error("bad argument #1 to pairs (table expected, got " .. type(table) .. ")", 2)
  end
  local keys, place = {}, 0
  for key in following, table do keys[#keys + 1] = key end
  sort(keys, precedes)
  local function after()
    place = place + 1
    local key = keys[place]
    if key == nil then return nil end
    local value = table[key]
    if value == nil then return after() end
    return key, value
  end
  return after, table, nil
end

os = { time = raising(native.time), date = raising(native.date) }

local kube = {}
for name, call in pairs(native.kube) do
  kube[name] = raising(call)
end
local modules = { kube = kube, math = math, os = os, string = string, table = table }
require = function(name)
  local found = modules[name]
  if found == nil then error("module " .. tostring(name) .. " not found", 2) end
  return found
end
