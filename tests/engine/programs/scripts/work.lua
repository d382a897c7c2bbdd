local t, text = {}, io.open("text.txt"):read("a")
for w in text:gmatch("%a+") do t[w] = (t[w] or 0) + 1 end
local keys = {} for k in pairs(t) do keys[#keys + 1] = k end table.sort(keys)
for _, k in ipairs(keys) do io.write(k, "=", t[k], " ") end print()
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
print(fib(24))
local co = coroutine.wrap(function() for i = 1, 1000 do coroutine.yield(i * i) end end)
local s = 0 for i = 1, 1000 do s = s + co() end print(s)
print(pcall(error, "caught"))
local x = 0.5 for i = 1, 300000 do x = 3.7 * x * (1 - x) end print(string.format("%.6f", x))
print(select("#", string.byte(string.rep("x", 200), 1, -1)), ("abc"):rep(3, "-"))
os.exit(9)
