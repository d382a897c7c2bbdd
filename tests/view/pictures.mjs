// Pictures of every view of every file, light and dark, at 1280 px and on a phone: to be looked at.
// tests/view/shots makes them. Each picture is checked, too: nothing on the console, nothing that axe
// finds serious, nothing that sticks out sideways, no name that is cut without a tooltip.
import { written } from './views.mjs';

const wide = { width: 1280, height: 900 }, phone = { width: 390, height: 844 };
const looks = [['wide', wide, 'light'], ['wide', wide, 'dark'], ['phone', phone, 'light'], ['phone', phone, 'dark']];

// What is shown beside the views as they open first: [name of the picture, view, link, what is done].
const more = {
  'heap.quern': (t) => {
    const end = t.print('heap.quern', '--view=timeline').end;
    const part = { from: String(Math.floor(end / 3)), to: String(Math.floor((2 * end) / 3)) };
    const sql = 'SELECT function, count(*) AS blocks, sum(size) AS bytes FROM allocations JOIN frames USING (stack) WHERE depth = 0 GROUP BY function ORDER BY bytes DESC';
    return [
      ['stacked', 'timeline', { stacked: '1' }],
      ['window', 'timeline', part],
      ['window-overview', 'overview', part],
      ['window-diagnosis', 'diagnosis', part],
      ['answer', 'query', { sql }],
      ['mistake', 'query', { sql: 'SELECT nothing FROM nowhere' }],
      ['help', 'overview', {}, (page) => page.keyboard.press('?')],
    ];
  },
  'names.quern': (t) => [
    ['stacked', 'timeline', { stacked: '1' }],
    ['icicle', 'flame', { icicle: '1', search: 'string', metric: 'total' }],
    ['inverted', 'flame', { invert: '1', merge: '1', metric: 'count' }],
    ['tip', 'flame', { icicle: '1' }, async (page) => {
      const box = await page.locator('.flame').boundingBox();
      await page.mouse.move(box.x + box.width * 0.6, box.y + 75);
      await page.waitForSelector('.tip');
    }],
    ['bottom-up', 'tree', { invert: '1' }],
    ['compared', 'diff', { after: number(t, 'again.quern'), metric: 'total' }],
    ['not-found', 'functions', { search: 'nobody is called so' }],
  ],
  'massif.ours': () => [['stacked', 'timeline', { stacked: '1' }]],
  'massif.peer': () => [['stacked', 'timeline', { stacked: '1' }]],
  'names.massif': () => [['stacked', 'timeline', { stacked: '1' }]],
  'callgrind.ours': (t) => [['compared', 'diff', { after: number(t, 'callgrind.peer') }]],
  'names.callgrind': () => [
    ['zoomed', 'flame', { icicle: '1' }, async (page) => {
      await page.focus('.flame');
      for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowDown', 'Enter']) await page.keyboard.press(key);
      await page.waitForFunction(() => /node=/.test(location.hash));
    }],
  ],
  'memcheck.ours': (t) => {
    const rows = t.print('memcheck.ours', '--view=findings', '--top=1000').rows;
    const held = rows.find((row) => row.sections.some((part) => /Held by/.test(part.text || '')));
    const two = rows.find((row) => row.sections.filter((part) => part.frames.length).length > 1);
    return [['two-stacks', 'findings', { select: String(two.index) }], ['held', 'findings', { select: String(held.index) }]];
  },
  'dhat.ours': (t) => accessed(t, 'dhat.ours'),
  'dhat.peer': (t) => accessed(t, 'dhat.peer'),
};

function number(t, name) {
  return String(t.settings.names.indexOf(name));
}

function accessed(t, name) {
  const row = t.print(name, '--view=points', '--top=3000').rows.find((one) => one.accesses);
  return [['accesses', 'points', { select: String(row.point) }]];
}

// Text that is cut on the screen and has no tooltip with all of it.
function cutNames() {
  return [...document.querySelectorAll('#app *')].filter((one) => {
    if (getComputedStyle(one).textOverflow !== 'ellipsis' || one.scrollWidth <= one.clientWidth) return false;
    return !one.closest('[title]:not([title=""])');
  }).map((one) => one.outerHTML.slice(0, 120));
}

class Album {
  constructor(t) {
    this.t = t;
    this.taken = 0;
    this.wrong = [];
  }

  async take(name) {
    const { t } = this, { page } = t;
    await t.quiet();
    // All of the page, as far as somebody scrolls.
    const tall = await page.evaluate(() => [innerWidth, Math.min(document.documentElement.scrollHeight, Math.round(2.4 * innerHeight))]);
    const path = `${t.settings.shots}/${name}.png`;
    await page.screenshot({ path, fullPage: true, clip: { x: 0, y: 0, width: tall[0], height: Math.max(tall[1], page.viewportSize().height) } });
    this.taken++;
    for (const check of [() => t.fits(name), () => t.accessible(name)])
      await check().catch((error) => this.wrong.push(error.message));
    const cut = await page.evaluate(cutNames);
    if (cut.length) this.wrong.push(`${name}: cut without a tooltip: ${cut[0]}`);
    for (const problem of t.problems.splice(0)) this.wrong.push(`${name}: ${problem}`);
  }

  async close() {
    if (this.t.context) await this.t.context.close();
    this.t.context = this.t.page = null;
  }

  done() {
    console.log(`# ${this.taken} pictures`);
    if (this.wrong.length) throw new Error(this.wrong.join('; '));
  }
}

// Views of files of which little is left look alike.
const poor = ['cut.quern', 'memcheck.cut'], telling = ['timeline', 'findings', 'flame'];

// Every view of these files, in each look.
function ofFiles(...names) {
  return async (t) => {
    const album = new Album(t);
    for (const [size, viewport, colorScheme] of looks) {
      for (const name of names) {
        await t.open({ viewport, colorScheme });
        const shown = (t.printed(name)?.views ?? []).filter((view) => !poor.includes(name) || telling.includes(view));
        const views = ['overview', ...shown].map((view) => [view, view, {}]);
        for (const [picture, view, link, act] of [...views, ...(more[name]?.(t) ?? [])]) {
          await t.show(name, view, link);
          if (act) await act(t.page);
          await album.take(`${name}-${picture}-${size}-${colorScheme}`);
        }
        await album.close();
      }
    }
    album.done();
  };
}

// Pages in files, without a server and a network; each in the looks that differ most.
async function onDisk(t) {
  const album = new Album(t);
  const kinds = [['heap.quern'], ['massif.peer'], ['callgrind.peer'], ['instructions.ours'], ['cachegrind.peer'], ['memcheck.peer'], ['dhat.ours'], ['collapsed'],
    ['flame.stacks'], ['names.quern'], ['callgrind.ours', 'callgrind.peer']];
  for (const names of kinds) {
    const views = ['overview', ...(t.printed(names[0])?.views ?? []).filter((view) => view !== 'query')];
    for (const [size, viewport, colorScheme] of [looks[0], looks[3]]) {
      const address = await written(t, names, { viewport, colorScheme });
      for (const view of names.length > 1 ? ['overview', 'diff'] : views) {
        await t.page.goto('about:blank');
        await t.page.goto(`${address}#view=${view}`);
        await album.take(`html-${names.join('-')}-${view}-${size}-${colorScheme}`);
      }
      await album.close();
    }
  }
  album.done();
}

// While a file is read, and when the server has gone.
async function otherStates(t) {
  const album = new Album(t);
  for (const [size, viewport, colorScheme] of looks) {
    const page = await t.open({ viewport, colorScheme });
    await page.route('**/ask/files*', async (route) => {
      const answer = await (await route.fetch()).json();
      const so_far = { time: 2e9, held: 1 << 20, peak: 3 << 20, allocations: 12345, points: [[1e9, 1 << 20], [1.5e9, 3 << 20], [2e9, 1 << 20]] };
      answer.files[0] = { ...answer.files[0], ready: false, read: 3 << 20, size: 12 << 20, so_far };
      await route.fulfill({ json: answer }).catch(() => {}); // asked before, answered after the picture
    });
    t.settled = async () => {};
    t.quiet = async () => {};
    await page.goto(t.settings.address);
    await page.waitForSelector('.loading .spark path');
    await album.take(`state-reading-${size}-${colorScheme}`);
    await page.unroute('**/ask/files*');
    await page.waitForSelector('main.view-overview');
    await page.route('**/ask/**', (route) => route.abort());
    await page.click('nav.views >> text=Threads');
    await page.waitForSelector('.problem');
    t.problems = [];
    await album.take(`state-server-gone-${size}-${colorScheme}`);
    await page.reload();
    await page.waitForSelector('.problem');
    t.problems = [];
    await album.take(`state-server-gone-reloaded-${size}-${colorScheme}`);
    await album.close();
  }
  album.done();
}

export const pictures = {
  page_pictures_recording: ofFiles('heap.quern'),
  page_pictures_names: ofFiles('names.quern'),
  page_pictures_massif: ofFiles('massif.ours', 'massif.peer', 'names.massif'),
  page_pictures_callgrind: ofFiles('callgrind.ours', 'callgrind.peer'),
  page_pictures_instructions: ofFiles('instructions.ours', 'instructions.peer', 'names.callgrind'),
  page_pictures_cachegrind: ofFiles('cachegrind.ours', 'cachegrind.peer', 'names.cachegrind'),
  page_pictures_dhat: ofFiles('dhat.ours', 'dhat.peer', 'names.dhat'),
  page_pictures_memcheck: ofFiles('memcheck.ours', 'memcheck.peer', 'names.memcheck'),
  page_pictures_stacks: ofFiles('collapsed', 'flame.stacks'),
  page_pictures_damaged: ofFiles('cut.quern', 'damaged.quern', 'nothing', 'massif.damaged', 'memcheck.cut', 'memcheck.damaged', 'dhat.damaged'),
  page_pictures_on_disk: onDisk,
  page_pictures_states: otherStates,
};
