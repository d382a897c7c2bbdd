// work.js SIZE: objects, strings, maps and sorting, as a server in node does.
const size = Number(process.argv[2]);
let sum = 0;
const map = new Map();
for (let i = 0; i < size; i++) {
    const key = `key ${i * 7919 % 10007}`;
    const entry = map.get(key) ?? { count: 0, texts: [] };
    entry.count += i % 3;
    entry.texts.push(key + i);
    if (entry.texts.length > 8)
        entry.texts = [];
    map.set(key, entry);
}
const rows = [...map.entries()].sort((a, b) => a[1].count - b[1].count || (a[0] < b[0] ? -1 : 1));
for (const [key, entry] of rows)
    sum = (sum * 31 + entry.count + JSON.parse(JSON.stringify({ key, texts: entry.texts })).texts.length) % 1000003;
console.log(sum);
