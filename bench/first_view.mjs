// How long it takes from starting quern view until a page shows a view, and how long the page is busy
// at a stretch when somebody then zooms in the flame graph: {"seconds", "busy"}, printed; busy is the
// longest task in milliseconds of the clock, 0 where none took 50.
// node first_view.mjs FOLDER_OF_PACKAGES CHROMIUM QUERN FILE VIEW SELECTOR
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const ZOOMS = 5;
const [folder, chromium, quern, file, view, selector] = process.argv.slice(2);
const playwright = createRequire(join(folder, 'package.json'))('playwright-core');
const browser = await playwright.chromium.launch({ executablePath: chromium, args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'] });
const page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
const began = performance.now();
const server = spawn(quern, ['view', '--no-browser', file], { stdio: ['ignore', 'pipe', 'ignore'] });
const address = await new Promise((resolve) => server.stdout.once('data', (data) => resolve(String(data).trim())));
await page.goto(`${address}#view=${view}`);
await page.waitForSelector(selector, { timeout: 250000 });
const seconds = (performance.now() - began) / 1000;

await page.goto(`${address}#view=flame&icicle=1`);
await page.waitForSelector('.flame canvas', { timeout: 250000 });
await page.evaluate(() => {
  window.longest = 0;
  new PerformanceObserver((list) => list.getEntries().forEach((one) => (window.longest = Math.max(window.longest, one.duration))))
    .observe({ type: 'longtask' });
});
for (let i = 0; i < ZOOMS; i++) {
  const before = page.url();
  await page.focus('.flame');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  // The end of a shallow tree: what is zoomed to is asked for again.
  if (!(await page.waitForFunction((old) => location.href !== old, before, { timeout: 3000 }).catch(() => null))) break;
  await page.waitForFunction(() => !document.querySelector('.waiting'), null, { timeout: 250000 });
}
// Tasks are told of when they are over.
await page.evaluate(() => new Promise((done) => setTimeout(done, 200)));
console.log(JSON.stringify({ seconds, busy: await page.evaluate(() => window.longest) }));
await browser.close();
server.kill();
