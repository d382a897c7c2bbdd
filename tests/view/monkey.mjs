// Random clicks, keys, file and tab switches over every kind of file. No console error, no page error,
// no fault of a view and no blank view is allowed.
//
// The seed decides what is done; it is printed, and so are the last actions before a fault. What is on
// the screen also depends on how fast answers come, so a seed repeats a run only roughly.
import { written } from './views.mjs';

const SECONDS = 60; // a view that still waits after this time is stuck
const FAULTS = 10; // the run ends after this many
const TRAIL = 12; // actions that are shown with a fault
// Pages in files, by the files they are written from. A name that is not there is left out.
const SAVED = [['heap.quern', 'again.quern', 'massif.ours'], ['instructions.ours', 'cachegrind.peer'], ['memcheck.peer', 'dhat.ours']];
const KEYS = ['ArrowUp', 'ArrowUp', 'ArrowDown', 'ArrowDown', 'ArrowLeft', 'ArrowRight', 'Enter', 'Enter', 'Escape', 'Tab', 'Tab',
  'Shift+Tab', '[', ']', '?', '/', 'Home', 'End', 'PageDown', 'PageUp', ' ', 'Control+Enter'];
const WORDS = ['a', 'main', 'zzz', '<img', '(', '%', '\\', 'é', ' '];
const VIEWS = ['flame', 'flame', 'flame', 'flame', 'map', 'map', 'tree', 'timeline', 'calls', 'source', 'diff', 'functions', 'findings', 'points', 'query', 'overview'];
const AREAS = '.flame, .map, .chart svg, .graph, .both, .spark';

// mulberry32
function generator(seed) {
  let at = seed >>> 0;
  return () => {
    at = (at + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(at ^ (at >>> 15), at | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

// In the page: what is wrong with what is shown, or ''.
function wrong() {
  const mains = document.querySelectorAll('main');
  if (mains.length !== 1) return `there are ${mains.length} views at once`;
  if (document.querySelectorAll('header').length !== 1) return 'the header is gone or doubled';
  const [main] = mains;
  const fault = main.querySelector('.fault');
  if (fault) return `a fault: ${fault.innerText}`;
  if (!main.matches('.damaged')) {
    if (document.querySelectorAll('nav.views').length !== 1) return 'the tabs are gone or doubled';
    if (document.querySelectorAll('nav.views [aria-current]').length !== 1) return 'no tab is the current one';
  }
  const sandwich = main.querySelector('[data-testid=sandwich]') ? 2 : 1; // callers above, callees below
  if (document.querySelectorAll('.flame').length > sandwich) return `there are more than ${sandwich} .flame`;
  if (document.querySelector('[data-testid=fault]')) return 'something failed outside of a view';
  for (const selector of ['.map', '.chart', '.tip', '.crumbs'])
    if (document.querySelectorAll(selector).length > 1) return `there is more than one ${selector}`;
  if (main.innerText.trim().length < 5 && !main.querySelector('canvas, svg')) return 'the view is blank';
  if (main.getBoundingClientRect().height < 20) return 'the view has no height';
  const words = new URLSearchParams(location.hash.slice(1));
  const problem = main.querySelector('.problem, .empty, .damaged');
  if (main.matches('.view-flame') && !problem) {
    if (!main.querySelector('.flame')) return 'there is no flame graph';
    const crumbs = main.querySelectorAll('.crumbs button').length;
    // What callers and callees are shown of is not zoomed to; the way back is.
    const wanted = words.get('node') && sandwich === 1 ? words.get('node').split('.').length + 1 : 0;
    if (crumbs !== wanted) return `there are ${crumbs} breadcrumbs for a zoom of ${wanted}`;
  }
  if (main.matches('.view-map') && !problem && !main.querySelector('.map')) return 'there is no call map';
  for (const canvas of main.querySelectorAll('canvas')) {
    if (!canvas.width || !canvas.height) return 'a canvas has no size';
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    if (!data.some((one) => one)) return 'a canvas is blank';
  }
  return '';
}

class Monkey {
  constructor(t, { actions, seed }) {
    this.t = t;
    this.most = actions;
    this.seed = seed;
    this.chance = generator(seed);
    this.done = 0;
    this.kinds = {};
    this.files = new Set();
    this.views = new Set();
    this.trail = [];
    this.faults = [];
  }

  below(count) {
    return Math.floor(this.chance() * count);
  }

  one(list) {
    return list[this.below(list.length)];
  }

  // A page: of the server, or one in a file.
  async begin(address, saved) {
    const { t } = this;
    if (t.context) await t.context.close();
    await t.open({ viewport: { width: this.one([1280, 1280, 390]), height: 844 }, permissions: ['clipboard-read', 'clipboard-write'], offline: !!saved });
    this.address = address;
    this.saved = saved;
    await t.page.goto(address);
    await t.page.waitForSelector('main');
    this.note(`open ${saved || 'the server'}`);
  }

  note(what) {
    this.trail.push(what);
    if (this.trail.length > TRAIL) this.trail.shift();
  }

  // A point in an element that is in sight; null if there is none.
  async point(selector) {
    const boxes = await this.t.page.$$eval(selector, (all) => all.map((one) => one.getBoundingClientRect())
      .map((box) => [Math.max(0, box.left), Math.max(0, box.top), Math.min(innerWidth, box.right), Math.min(innerHeight, box.bottom)])
      .filter(([left, top, right, bottom]) => right - left > 2 && bottom - top > 2));
    if (!boxes.length) return null;
    const [left, top, right, bottom] = this.one(boxes);
    return [left + 1 + this.chance() * (right - left - 2), top + 1 + this.chance() * (bottom - top - 2)];
  }

  // Names of what can be clicked; what leads away or writes a file is left out.
  async click(selector) {
    const { page } = this.t;
    const all = await page.$$(selector);
    if (!all.length) return false;
    const element = this.one(all);
    const what = await element.evaluate((one) => (one.textContent || one.getAttribute('aria-label') || one.tagName).trim().slice(0, 40)).catch(() => '');
    if (/Download/.test(what)) return false;
    this.note(`click ${selector.length > 30 ? 'on' : selector} '${what}'`);
    // An element that goes away while it is clicked is no fault.
    return element.click({ timeout: 1000, noWaitAfter: true }).then(() => true, () => false);
  }

  async choose(selector) {
    const { page } = this.t;
    const all = await page.$$(selector);
    if (!all.length) return false;
    const element = this.one(all);
    const values = await element.$$eval('option', (options) => options.map((one) => one.value)).catch(() => []);
    if (!values.length) return false;
    const value = this.one(values);
    this.note(`choose '${value}' in ${selector}`);
    return element.selectOption(value, { timeout: 1000, noWaitAfter: true }).then(() => true, () => false);
  }

  actions() {
    const { page } = this.t;
    return {
      tab: [3, () => this.click('nav.views button')],
      file: [2, () => this.choose('select[aria-label=File]')],
      // What is pointed at is the point of it: the pointer stays where the click was.
      area: [10, async () => {
        const at = await this.point(AREAS);
        if (!at) return false;
        this.note(`click at ${at.map(Math.round)}`);
        await page.mouse.move(...at, { steps: 2 });
        await page.mouse.click(...at);
      }],
      hover: [2, async () => {
        const at = await this.point(`${AREAS}, main`);
        if (!at) return false;
        this.note(`hover at ${at.map(Math.round)}`);
        await page.mouse.move(...at, { steps: 3 });
      }],
      drag: [3, async () => {
        const from = await this.point('.chart svg'), to = await this.point('.chart svg');
        if (!from) return false;
        this.note(`drag from ${from.map(Math.round)} to ${to.map(Math.round)}`);
        await page.mouse.move(...from);
        await page.mouse.down();
        await page.mouse.move(...to, { steps: 3 });
        await page.mouse.up();
      }],
      key: [4, async () => {
        if (this.below(3) === 0) await page.focus('.flame, .map, main tbody tr[tabindex], .table-scroll', { timeout: 100 }).catch(() => {});
        const key = this.one(KEYS);
        this.note(`key ${key}`);
        await page.keyboard.press(key);
      }],
      crumb: [3, () => this.click('.crumbs button')],
      button: [3, () => this.click('main button, .window-chip button')],
      row: [3, () => this.click('main tbody tr.clickable')],
      check: [3, () => this.click('main label.check')],
      select: [2, () => this.choose('main select, .bar-line select, select.theme')],
      search: [2, async () => {
        const field = await page.$('main #search');
        if (!field) return false;
        const word = this.below(4) ? this.one(WORDS) : '';
        this.note(`search '${word}'`);
        await field.fill(word, { timeout: 1000 }).catch(() => {});
      }],
      number: [1, async () => {
        const all = await page.$$('main input[type=number]');
        if (!all.length) return false;
        const value = this.one(['0', '0.01', '0.1', '1', '1000000', '-1', '']);
        this.note(`number '${value}'`);
        await this.one(all).fill(value, { timeout: 1000 }).catch(() => {});
        await page.keyboard.press('Enter');
      }],
      scroll: [1, async () => {
        const at = await this.point('main, .table-scroll, .flame');
        if (!at) return false;
        this.note('scroll');
        await page.mouse.move(...at);
        await page.mouse.wheel(0, this.one([-3000, -200, 200, 3000]));
      }],
      history: [2, async () => {
        const way = this.one(['back', 'back', 'forward']);
        // Not out of the page.
        const known = await page.evaluate(() => history.length);
        if (known < 4) return false;
        this.note(way);
        await page.evaluate((way) => history[way](), way);
      }],
      reload: [1, async () => {
        if (this.below(3)) return false;
        this.note('reload');
        await page.reload();
      }],
      size: [1, async () => {
        if (this.below(3)) return false;
        const width = this.one([390, 700, 1280, 1600]);
        this.note(`width ${width}`);
        await page.setViewportSize({ width, height: this.one([500, 844, 1100]) });
      }],
    };
  }

  async act() {
    const all = Object.entries(this.actions());
    let at = this.below(all.reduce((sum, [, [weight]]) => sum + weight, 0));
    for (const [name, [weight, run]] of all) {
      if ((at -= weight) >= 0) continue;
      if ((await run()) === false) return;
      this.kinds[name] = (this.kinds[name] || 0) + 1;
      this.done++;
      return;
    }
  }

  // All is shown; what is wrong with it, or ''.
  async judge() {
    const { t } = this, { page } = t;
    // History may have led out of the page.
    if (page.url() === 'about:blank') await page.goto(this.address);
    const shown = () => page.waitForFunction(() => document.querySelector('main') && !document.querySelector('.waiting, .loading'), null, { timeout: SECONDS * 1000 });
    const settled = await shown().then(() => t.quiet(SECONDS * 1000)).then(() => true, () => false);
    if (t.problems.length) return t.problems.join('; ');
    if (!settled) return `it still waits: ${await page.$eval('main', (one) => one.innerText.slice(0, 200)).catch(() => 'there is no view')}`;
    const reason = await page.evaluate(wrong);
    if (t.problems.length) return t.problems.join('; ');
    if (reason) return reason;
    const [file, view] = await page.evaluate(() => [
      document.querySelector('select[aria-label=File]')?.selectedOptions[0]?.text ?? document.querySelector('.file-name')?.textContent,
      document.querySelector('main').className]);
    this.files.add(file);
    this.views.add(`${file} ${view}`);
    // Left open, help would take all clicks.
    if (this.below(5) && (await page.$('dialog[open]'))) await page.keyboard.press('Escape');
    return '';
  }

  async run() {
    const { t } = this;
    const saved = [];
    for (const names of SAVED) {
      const there = names.filter((name) => name in t.settings.files);
      saved.push([await written(t, there), there.join(' ')]);
      await t.context.close();
    }
    const files = t.settings.names.length, started = Date.now();
    let visit = 0;
    while (this.done < this.most && this.faults.length < FAULTS) {
      // Every file is visited, and again until there have been enough actions; every tenth visit is to a page in a file.
      const [address, name] = visit % 10 === 9 ? this.one(saved) : [`${t.settings.address}#file=${visit % files}&view=${this.one(VIEWS)}`, ''];
      await this.begin(address, name);
      const until = Math.min(this.most, this.done + this.step(files));
      visit++;
      let reason = await this.judge();
      for (let tried = 0; !reason && this.done < until && tried < 1000; tried++) {
        // Most actions come before the last one's answer is there.
        for (let burst = 1 + this.below(4); burst > 0 && this.done < until; burst--) {
          await this.act().catch((error) => (/closed|crash/i.test(error.message) ? Promise.reject(error) : null));
        }
        reason = await this.judge();
      }
      t.problems.length = 0;
      if (reason) {
        const where = t.page.url().replace(/^.*#/, '#');
        this.faults.push(`${reason.slice(0, 300)} (action ${this.done}, at ${name} ${where}, after ${this.trail.join(', ')})`);
        console.log(`# fault ${this.faults.length}: ${this.faults[this.faults.length - 1].replace(/\s+/g, ' ')}`);
      }
    }
    const kinds = Object.entries(this.kinds).map(([name, count]) => `${name} ${count}`).join(', ');
    console.log(`# monkey: seed ${this.seed}, ${this.done} actions in ${Math.round((Date.now() - started) / 1000)} s (${kinds}); ` +
      `${this.files.size} files, ${this.views.size} views of them, ${this.faults.length} faults`);
    if (this.faults.length) throw new Error(`seed ${this.seed}: ${this.faults.length} faults; the first: ${this.faults[0]}`);
  }

  // Actions in one visit: so that all files get some.
  step(files) {
    return Math.max(5, Math.min(60, Math.ceil(this.most / (1.2 * files))));
  }
}

export const monkey = {
  async page_monkey(t) {
    await new Monkey(t, t.settings.monkey).run();
  },
};
