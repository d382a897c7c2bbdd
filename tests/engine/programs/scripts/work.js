const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const crypto = require('crypto'), zlib = require('zlib'), fs = require('fs');
if (!isMainThread) {
  let h = workerData;
  for (let i = 0; i < 300000; i++) h = (Math.imul(h, 31) + i) | 0;
  parentPort.postMessage(h);
} else {
  const text = fs.readFileSync('text.txt', 'utf8');
  const words = {};
  for (const w of text.split(/\s+/)) words[w] = (words[w] || 0) + 1;
  console.log(Object.keys(words).length, crypto.createHash('sha256').update(text).digest('hex'));
  console.log(zlib.gunzipSync(zlib.gzipSync(text)).toString() === text);
  class A { constructor(x) { this.x = x; } f(y) { return (this.x * y) % 1000003; } }
  class B extends A { f(y) { return super.f(y) + 1; } }
  let t = 1; const objects = [new A(3), new B(5), new A(7)];
  for (let i = 1; i < 1000000; i++) t = objects[i % 3].f(t + i);
  console.log(t);
  let caught = 0;
  for (let i = 0; i < 1000; i++) try { null.x; } catch (e) { caught++; }
  console.log(caught, [5, 3, 9].sort().join(), (0.1 + 0.2).toFixed(20), 2n ** 100n);
  const run = (n) => new Promise((done) => new Worker(__filename, { workerData: n }).on('message', done));
  Promise.all([1, 2, 3].map(run)).then((r) => { console.log(r); process.exitCode = 4; });
}
