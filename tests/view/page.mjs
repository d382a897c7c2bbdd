// The page in headless Chromium: one browser, a test after the other. A test fails by throwing; an
// error on the console, a request to anywhere else or a serious finding of axe fails it, too.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';
import { keys } from './keys.mjs';
import { monkey } from './monkey.mjs';
import { pictures } from './pictures.mjs';
import { tests } from './views.mjs';

const settings = JSON.parse(process.argv[2]);
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

function wanted(name) {
  if (!settings.patterns.length) return true;
  return settings.patterns.some((pattern) =>
    new RegExp('^' + pattern.replace(/[.+^${}()|[\]\\]/g, '\\$&').replace(/\*/g, '.*').replace(/\?/g, '.') + '$').test(name));
}

export function fail(reason) {
  throw new Error(reason);
}

class Tester {
  constructor(browser) {
    this.browser = browser;
    this.settings = settings;
    this.origin = settings.address;
    this.problems = [];
    this.attacks = false; // what the browser says of attacks that it has stopped is no problem then
  }

  // A new page; what it must not do is noted.
  async open(options = {}) {
    this.context = await this.browser.newContext({
      viewport: { width: 1280, height: 900 }, colorScheme: 'light', bypassCSP: false, ...options,
    });
    this.page = await this.context.newPage();
    this.page.setDefaultTimeout(300000);
    this.page.on('console', (message) => {
      if (message.type() === 'error' && !this.attacks && !/status of 422/.test(message.text())) this.problems.push(`console: ${message.text()}`);
    });
    this.page.on('pageerror', (error) => this.problems.push(`error: ${error.message}`));
    this.page.on('dialog', (dialog) => {
      this.problems.push(`a dialog: ${dialog.message()}`);
      dialog.dismiss();
    });
    this.asked = 0;
    this.page.on('requestfinished', () => this.asked--);
    this.page.on('requestfailed', () => this.asked--);
    this.page.on('request', (request) => {
      this.asked++;
      if (!this.attacks && !request.url().startsWith(this.origin) && !/^(data|blob|file):/.test(request.url()))
        this.problems.push(`request to ${request.url()}`);
    });
    return this.page;
  }

  // A view of a file of the server.
  async show(name, view, more = {}, options = {}) {
    const file = settings.names.indexOf(name);
    if (file < 0) fail(`there is no ${name}`);
    const page = this.page || (await this.open(options));
    const words = new URLSearchParams({ file: String(file), view, ...more });
    const here = await page.$eval('main', (one) => one.className).catch(() => '');
    if (here && here !== `view-${view}` && page.url().startsWith(settings.address)) {
      // Another view: as if somebody had followed a link.
      await page.evaluate((hash) => (location.hash = hash), words.toString());
    } else {
      await page.goto('about:blank');
      await page.goto(`${settings.address}#${words}`);
    }
    await page.waitForFunction(
      ([file, view]) => document.querySelector('select[aria-label=File]')?.value === file &&
        document.querySelector(`main.view-${view}, main.damaged`)?.querySelector('h2, section, .table-outer, .problem'),
      [String(file), view], { timeout: 300000 });
    await this.settled();
    return page;
  }

  async settled(timeout = 300000) {
    await this.page.waitForFunction(() => !document.querySelector('.waiting, .loading'), null, { timeout });
  }

  // What happened so far is on the screen.
  async painted() {
    await this.page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)))));
  }

  // All that was asked for is there and shown, and led to no further question.
  async quiet(timeout = 300000) {
    const end = Date.now() + timeout;
    for (let times = 0; times < 3; times++) {
      if (Date.now() > end) fail('answers keep coming');
      await this.settled(timeout);
      await this.painted();
      if (this.asked > 0) times = -1;
    }
  }

  async accessible(what, rules = null) {
    // The page's policy lets no script in but its own: axe is evaluated by the debugger.
    const session = await this.context.newCDPSession(this.page);
    await session.send('Runtime.evaluate', { expression: axe });
    const { result } = await session.send('Runtime.evaluate', {
      expression: `axe.run(document, ${JSON.stringify({ resultTypes: ['violations'], ...(rules ? { runOnly: rules } : {}) })}).then((found) => JSON.stringify(
        found.violations.filter((one) => one.impact === 'serious' || one.impact === 'critical')
          .map((one) => one.id + ': ' + one.nodes.slice(0, 3).map((node) => node.html + ' ' + node.failureSummary).join(' | '))))`,
      awaitPromise: true, returnByValue: true,
    });
    await session.detach();
    const found = JSON.parse(result.value);
    if (found.length) fail(`${what}: axe finds ${found.join('; ').slice(0, 900)}`);
  }

  // Nothing sticks out sideways.
  async fits(what) {
    const wide = await this.page.evaluate(() => [document.documentElement.scrollWidth, window.innerWidth]);
    if (wide[0] > wide[1]) fail(`${what}: the page is ${wide[0]} px wide in a window of ${wide[1]} px`);
  }

  // The overview, or null of a file that cannot be read.
  printed(name) {
    try {
      return this.print(name);
    } catch {
      return null;
    }
  }

  print(name, ...words) {
    const out = execFileSync(settings.quern, ['print', '--json', ...words, settings.files[name]], { encoding: 'utf8' });
    return JSON.parse(out);
  }

  async close() {
    if (this.context) await this.context.close();
    this.context = this.page = null;
    const problems = this.problems;
    this.problems = [];
    if (problems.length) fail(problems.slice(0, 3).join('; '));
  }
}

const browser = await chromium.launch({
  executablePath: settings.chromium,
  args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
});
let bad = 0;
for (const [name, run] of Object.entries(settings.shots ? pictures : { ...tests, ...keys, ...monkey })) {
  if (!wanted(name)) continue;
  const tester = new Tester(browser);
  let reason = '';
  try {
    await run(tester);
  } catch (error) {
    reason = error.message;
  }
  try {
    await tester.close();
  } catch (error) {
    reason = reason || error.message;
  }
  if (reason) bad++;
  console.log(reason ? `not ok ${name} - ${reason.replace(/\s+/g, ' ').slice(0, 1000)}` : `ok ${name}`);
}
await browser.close();
process.exit(bad ? 1 : 0);
