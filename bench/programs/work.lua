local n = tonumber(arg[1])
local function fib(k) if k < 2 then return k end return fib(k - 1) + fib(k - 2) end
print(fib(n))
local words, s = {}, 12345
for i = 1, n * 4000 do
  s = (s * 1103515245 + 12345) % 2147483648
  local k = "w" .. (s % 5000)
  words[k] = (words[k] or 0) + 1
end
local keys = {}
for k in pairs(words) do keys[#keys + 1] = k end
table.sort(keys, function(a, b) return words[a] ~= words[b] and words[a] > words[b] or words[a] == words[b] and a < b end)
print(#keys, keys[1], words[keys[1]])
local m = {}
for i = 1, 120 do m[i] = {} for j = 1, 120 do m[i][j] = (i * j) % 17 end end
local t = 0
for i = 1, 120 do for j = 1, 120 do local x = 0 for k = 1, 120 do x = x + m[i][k] * m[k][j] end t = t + x end end
print(t)
