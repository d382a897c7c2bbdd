// Generated code that takes nearly all the time, and memory that it allocates.
const kept = [];
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
function keep(n) { kept.push(Buffer.allocUnsafeSlow(n)); return n; }
let sum = 0;
for (let i = 0; i < 3000; i++) sum += keep(10000);
for (let i = 0; i < 8; i++) sum += fib(32);
console.log(sum);
