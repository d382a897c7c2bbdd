// Each kind of file by keyboard only: nothing is clicked, nothing is focused but by Tab. What was found
// is in the address: loaded again, the page is the same.
import assert from 'node:assert/strict';

const STEPS = 150; // so often Tab is pressed to reach something

// Presses Tab until the focus is on what the selector means, with that text.
async function tabTo(page, selector, text = '') {
  for (let i = 0; i < STEPS; i++) {
    await page.keyboard.press('Tab');
    const there = await page.evaluate(([selector, text]) => {
      const one = document.activeElement;
      return one?.matches(selector) && one.textContent.includes(text);
    }, [selector, text]);
    if (there) return;
  }
  throw new Error(`${selector} ${text} is not reached by Tab`);
}

async function press(page, ...names) {
  for (const name of names) await page.keyboard.press(name);
}

// To a view by ] alone, whatever has the focus.
async function view(t, name) {
  for (let i = 0; i < 20; i++) {
    if (await t.page.$(`main.view-${name}`)) return t.quiet();
    const before = t.page.url();
    await t.page.keyboard.press(']');
    await t.page.waitForFunction((old) => location.href !== old, before);
  }
  throw new Error(`] does not lead to ${name}`);
}

async function sameAgain(t, what) {
  const read = () => t.page.$eval('#app', (one) => one.innerText);
  await t.quiet();
  // A button that has copied says so for a while.
  await t.page.waitForFunction(() => ![...document.querySelectorAll('button')].some((one) => one.textContent === 'Copied'));
  const before = await read();
  await t.page.reload();
  await t.page.waitForSelector('main');
  await t.quiet();
  assert.equal(await read(), before, `${what}, loaded again`);
}

async function downloaded(page) {
  const [file] = await Promise.all([page.waitForEvent('download'), page.keyboard.press('Enter')]);
  let text = '';
  for await (const part of await file.createReadStream()) text += part;
  return text.trim().split('\r\n');
}

async function begin(t, name) {
  await t.open({ permissions: ['clipboard-read', 'clipboard-write'] });
  const page = await t.show(name, 'overview');
  return { page, copied: () => page.evaluate(() => navigator.clipboard.readText()) };
}

// After a button that copies has said so.
async function copies(page) {
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.activeElement.textContent === 'Copied');
}

export const keys = {
  // A window typed in; sums of it; CSV and text of a table; SQL.
  async page_keys_recording(t) {
    const { page, copied } = await begin(t, 'heap.quern');
    const end = t.print('heap.quern', '--view=timeline').end;
    const [from, to] = [end / 4, end / 2].map((one) => (one / 1e9).toFixed(6));
    await view(t, 'timeline');
    await tabTo(page, 'input[type=number]');
    await page.keyboard.type(from);
    // The answer for the first bound comes while the second is typed.
    let answer;
    const held = new Promise((resolve) => (answer = resolve));
    await page.route('**/ask/overview*', async (route) => { await held; await route.continue(); });
    await press(page, 'Tab');
    await page.waitForFunction(() => /from=/.test(location.hash));
    await page.keyboard.type(to.slice(0, 4));
    answer();
    await t.quiet();
    await page.keyboard.type(to.slice(4));
    await press(page, 'Enter');
    await page.waitForFunction(() => /to=/.test(location.hash) && /from=/.test(location.hash));
    await page.evaluate(() => document.activeElement.blur());
    await view(t, 'functions');
    const wanted = t.print('heap.quern', '--view=functions', `--from=${from}`, `--to=${to}`, '--top=100');
    const selves = () => page.$$eval('tbody tr td:nth-child(1)', (all) => all.map((one) => one.title));
    assert.deepEqual(await selves(), wanted.rows.map((row) => `${row.self.toLocaleString('en')} bytes`));
    await sameAgain(t, 'functions of a window');
    await tabTo(page, 'button', 'Download CSV');
    assert.deepEqual((await downloaded(page)).slice(1).map((line) => Number(line.split(',')[1])), wanted.rows.map((row) => row.total));
    await tabTo(page, 'button', 'Copy as text');
    await copies(page);
    assert.equal((await copied()).split('\n').length, wanted.rows.length + 1);
    await view(t, 'query');
    await tabTo(page, '#sql');
    await press(page, 'Control+a');
    await page.keyboard.type('SELECT count(*) AS n FROM allocations');
    await press(page, 'Control+Enter');
    await page.waitForSelector('tbody td');
    const blocks = t.print('heap.quern', `--from=${from}`, `--to=${to}`).facts.find((fact) => fact.label === 'allocations').value;
    assert.equal(await page.textContent('tbody td'), String(blocks));
  },

  // A snapshot of the timeline is what the flame graph shows.
  async page_keys_massif(t) {
    for (const name of ['massif.ours', 'massif.peer']) {
      const { page } = await begin(t, name);
      await view(t, 'timeline');
      await tabTo(page, 'circle.peak');
      await press(page, 'Enter');
      await page.waitForFunction(() => /from=/.test(location.hash));
      await view(t, 'flame');
      const peak = t.print(name, '--view=timeline').points.find((point) => point.kind === 'peak');
      assert.match(await page.textContent('[data-testid=selected]'), new RegExp(`${peak.heap.toLocaleString('en')} bytes`));
      await sameAgain(t, name);
      await page.context().close();
      t.page = null;
    }
  },

  // A function by its name, its callees, its source.
  async page_keys_callgrind(t) {
    const { page } = await begin(t, 'callgrind.peer');
    await view(t, 'calls');
    await press(page, '/');
    await page.keyboard.type('grow');
    await page.waitForFunction(() => /^grow/.test(document.querySelector('section > h3')?.textContent || ''));
    await tabTo(page, '.pair tr.clickable', 'deeper');
    await press(page, 'Enter');
    await page.waitForFunction(() => /^deeper/.test(document.querySelector('section > h3')?.textContent || ''));
    await sameAgain(t, 'callers and callees');
    await tabTo(page, '.graph .node', 'grow');
    await press(page, 'Enter');
    await page.waitForFunction(() => /^grow/.test(document.querySelector('section > h3')?.textContent || ''));
    await tabTo(page, 'h3 button', 'Source');
    await press(page, 'Enter');
    await page.waitForSelector('.source tr.hot');
    await sameAgain(t, 'source');
  },

  // From the heaviest function to the flame graph and back; a table sorted otherwise.
  async page_keys_cachegrind(t) {
    const { page } = await begin(t, 'cachegrind.ours');
    await tabTo(page, '.top button');
    const name = await page.evaluate(() => document.activeElement.querySelector('.name').textContent);
    await press(page, 'Enter');
    await page.waitForFunction(() => document.querySelector('[data-testid=match]')?.textContent);
    assert.equal(new URLSearchParams(new URL(page.url()).hash.slice(1)).get('search'), name);
    await page.goBack();
    await page.waitForSelector('main.view-overview');
    await view(t, 'functions');
    await tabTo(page, '.sort', 'Function');
    await press(page, 'Enter');
    await page.waitForFunction(() => /sort=name/.test(location.hash));
    await t.quiet();
    const names = t.print('cachegrind.ours', '--view=functions', '--top=10000').rows.map((row) => row.name).sort();
    assert.deepEqual((await page.$$eval('tbody tr td.wide', (all) => all.map((one) => one.textContent))).slice(0, 5), names.slice(0, 5));
    await sameAgain(t, 'functions by name');
  },

  async page_keys_dhat(t) {
    const { page, copied } = await begin(t, 'dhat.peer');
    await view(t, 'points');
    await tabTo(page, 'tr.clickable');
    await press(page, 'ArrowDown', 'Enter');
    await page.waitForFunction(() => /select=/.test(location.hash));
    const number = Number(new URLSearchParams(new URL(page.url()).hash.slice(1)).get('select'));
    const wanted = t.print('dhat.peer', '--view=points', '--top=3000').rows.find((row) => row.point === number);
    await page.waitForFunction((frames) => document.querySelectorAll('[data-testid=point] .stack li').length === frames, wanted.frames.length);
    await tabTo(page, '[data-testid=point] button', 'Copy as text');
    await copies(page);
    assert.deepEqual((await copied()).split('\n').slice(-wanted.frames.length), wanted.frames);
    await sameAgain(t, 'a program point');
  },

  // The next finding, and the suppression that is made for it.
  async page_keys_memcheck(t) {
    const { page, copied } = await begin(t, 'memcheck.ours');
    await view(t, 'findings');
    const wanted = t.print('memcheck.ours', '--view=findings', '--top=10').rows[1];
    await tabTo(page, 'tr.clickable');
    await press(page, 'ArrowDown', 'Enter');
    await page.waitForFunction((what) => document.querySelector('.finding h3').textContent === what, wanted.what);
    await tabTo(page, 'button', 'Copy suppression');
    await copies(page);
    assert.equal(await copied(), wanted.suppression.join('\n') + '\n');
    await sameAgain(t, 'a finding');
  },

  // Flame graph and call map: in, and out again.
  async page_keys_collapsed(t) {
    const { page } = await begin(t, 'collapsed');
    for (const [name, inward] of [['flame', 'ArrowUp'], ['map', 'ArrowDown']]) {
      await view(t, name);
      await tabTo(page, `.${name}`);
      await press(page, inward);
      const chosen = await page.textContent('[data-testid=selected] .name');
      assert.notEqual(chosen, 'everything', name);
      await press(page, 'Enter');
      await page.waitForFunction(() => /node=/.test(location.hash));
      await t.quiet();
      assert.equal(await page.textContent('[data-testid=selected] .name'), chosen, name);
      await sameAgain(t, name);
      await tabTo(page, `.${name}`);
      await press(page, 'Escape');
      await page.waitForFunction(() => !/node=/.test(location.hash));
    }
  },

  // Another file, and two compared.
  async page_keys_files(t) {
    const { page } = await begin(t, 'callgrind.ours');
    const next = t.settings.names[t.settings.names.indexOf('callgrind.ours') + 1];
    await tabTo(page, 'select[aria-label=File]');
    await press(page, 'ArrowDown');
    await page.waitForFunction((name) => document.title.startsWith(name), next);
    await tabTo(page, 'nav.views button', 'Compare');
    await press(page, 'Enter');
    await page.waitForSelector('main.view-diff');
    await tabTo(page, 'main select');
    await page.keyboard.type('callgrind.ours');
    await page.waitForFunction((number) => new URLSearchParams(location.hash.slice(1)).get('after') === number, String(t.settings.names.indexOf('callgrind.ours')));
    await page.waitForSelector('[data-testid=diff-sum]');
    await sameAgain(t, 'a comparison');
  },
};
