// How long it takes from starting quern view until a page shows a view: seconds, printed.
// node first_view.mjs FOLDER_OF_PACKAGES CHROMIUM QUERN FILE VIEW SELECTOR
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [folder, chromium, quern, file, view, selector] = process.argv.slice(2);
const playwright = createRequire(join(folder, 'package.json'))('playwright-core');
const browser = await playwright.chromium.launch({ executablePath: chromium, args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'] });
const page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
const began = performance.now();
const server = spawn(quern, ['view', '--no-browser', file], { stdio: ['ignore', 'pipe', 'ignore'] });
const address = await new Promise((resolve) => server.stdout.once('data', (data) => resolve(String(data).trim())));
await page.goto(`${address}#view=${view}`);
await page.waitForSelector(selector, { timeout: 250000 });
console.log(((performance.now() - began) / 1000).toFixed(2));
await browser.close();
server.kill();
