// What each view must show. Numbers are compared with those of quern print --json.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const hostile = '<img src=x onerror=alert(1)>';

// Every view of a file: at 1280 px in light and dark, and on a phone. With pictures, on a dark phone,
// too.
async function everyView(t, name, views, more = {}) {
  const wide = { width: 1280, height: 900 }, phone = { width: 390, height: 844 };
  const looks = [['wide', wide, 'light'], ['wide', wide, 'dark'], ['phone', phone, 'light']];
  if (t.settings.shots) looks.push(['phone', phone, 'dark']);
  for (const [size, viewport, colorScheme] of looks) {
    await t.open({ viewport, colorScheme });
    for (const view of views) {
      const what = `${name}-${view}-${size}-${colorScheme}`;
      await t.show(name, view, more[view] || {});
      await t.shot(what);
      await t.fits(what);
      // The same elements in other colours: contrast is what differs.
      if (size === 'wide') await t.accessible(what, colorScheme === 'dark' ? ['color-contrast'] : null);
    }
    await t.context.close();
    t.page = null;
  }
}

async function texts(page, selector) {
  return page.$$eval(selector, (all) => all.map((one) => one.textContent.trim()));
}

async function titles(page, selector) {
  return page.$$eval(selector, (all) => all.map((one) => one.title));
}

const exact = (value, unit) => `${value.toLocaleString('en')}${unit ? ' ' + unit : ''}`;

export const tests = {
  async page_heap_views(t) {
    await everyView(t, 'heap.quern',
      ['overview', 'flame', 'tree', 'functions', 'libraries', 'threads', 'timeline', 'histograms', 'diagnosis']);
  },

  async page_overview_numbers(t) {
    for (const name of ['heap.quern', 'massif.ours', 'massif.peer', 'callgrind.ours', 'callgrind.peer', 'cachegrind.peer', 'collapsed', 'memcheck.ours', 'memcheck.peer', 'dhat.ours', 'dhat.peer']) {
      const page = await t.show(name, 'overview');
      const shown = await page.$$eval('[data-fact]', (all) => all.map((one) => [one.dataset.fact, one.dataset.value]));
      const wanted = t.print(name).facts.map((fact) => [fact.label, String(fact.value)]);
      assert.deepEqual(shown, wanted, name);
      assert.ok(shown.length > 1, name);
    }
  },

  async page_functions_numbers(t) {
    for (const name of ['heap.quern', 'massif.peer', 'callgrind.ours', 'callgrind.peer', 'cachegrind.peer', 'collapsed']) {
      const page = await t.show(name, 'functions');
      const wanted = t.print(name, '--view=functions', '--top=10');
      await page.waitForSelector('tbody tr td:nth-child(3)');
      const selves = (await titles(page, 'tbody tr td:nth-child(1)')).slice(0, wanted.rows.length);
      const names = (await texts(page, 'tbody tr td:nth-child(3)')).slice(0, wanted.rows.length);
      assert.deepEqual(names, wanted.rows.map((row) => row.name), name);
      assert.deepEqual(selves, wanted.rows.map((row) => exact(row.self, wanted.unit)), name);
    }
  },

  async page_hostile_names_are_text(t) {
    const page = await t.show('heap.quern', 'libraries');
    assert.ok((await texts(page, 'tbody td:nth-child(3)')).includes(hostile));
    await t.show('heap.quern', 'threads');
    assert.ok((await texts(page, 'tbody td:nth-child(2)')).some((text) => text.startsWith('<img')));
    await t.show('heap.quern', 'flame', { search: hostile });
    assert.equal(await page.$$eval('img', (all) => all.length), 0);
  },

  async page_flame_zoom_search(t) {
    const page = await t.show('heap.quern', 'flame', { metric: 'total' });
    const tree = t.print('heap.quern', '--view=top-down', '--by=total', '--threshold=0.01');
    assert.match(await page.textContent('[data-testid=selected]'), new RegExp(exact(tree.total, 'bytes')));
    await page.fill('#search', 'churn');
    await page.waitForFunction(() => document.querySelector('[data-testid=match]').textContent);
    const functions = t.print('heap.quern', '--view=functions', '--by=total', '--top=100').rows;
    const churn = functions.find((row) => row.name === 'churn').total;
    const share = (100 * churn) / tree.total;
    assert.match(await page.textContent('[data-testid=match]'), new RegExp(`^${share.toFixed(share < 1 ? 2 : 1)} %`));
    await page.focus('.flame');
    await page.keyboard.press('ArrowUp');
    const first = await page.textContent('[data-testid=selected] .name');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => /node=/.test(location.hash));
    await t.settled();
    assert.equal(await page.textContent('.crumbs button:last-child'), first);
    assert.equal(await page.textContent('[data-testid=selected] .name'), first);
    const link = page.url();
    await page.focus('.flame');
    await page.keyboard.press('Escape');
    await page.waitForFunction(() => !/node=/.test(location.hash));
    await page.goto('about:blank');
    await page.goto(link);
    await page.waitForSelector('.crumbs button');
    assert.equal(await page.textContent('.crumbs button:last-child'), first, 'the link keeps the zoom');
    await page.goBack();
  },

  async page_flame_click_and_tip(t) {
    const page = await t.show('heap.quern', 'flame', { icicle: '1' });
    const box = await page.locator('.flame').boundingBox();
    await page.mouse.move(box.x + 20, box.y + 30);
    await page.waitForSelector('.tip');
    const name = await page.textContent('.tip b');
    await page.mouse.click(box.x + 20, box.y + 30);
    await page.waitForSelector('.crumbs button:nth-child(2)');
    assert.equal(await page.textContent('.crumbs button:last-child'), name);
  },

  async page_flame_shapes(t) {
    const page = await t.show('heap.quern', 'flame', { icicle: '1', metric: 'count' });
    const before = await page.textContent('.hint');
    await page.getByLabel('Merge recursion').check();
    await t.settled();
    await page.waitForFunction((old) => document.querySelector('.hint').textContent !== old, before);
    await page.getByLabel('Invert').check();
    await t.settled();
    await page.focus('.flame');
    await page.keyboard.press('ArrowDown');
    const up = t.print('heap.quern', '--view=functions', '--by=count', '--top=1').rows[0];
    assert.match(await page.textContent('[data-testid=selected]'), new RegExp(`${up.name} .*${exact(up.self, 'blocks')}`));
  },

  async page_tree_table(t) {
    const page = await t.show('heap.quern', 'tree', { metric: 'count' });
    const rows = await page.$$eval('tbody tr', (all) => all.map((one) => [one.getAttribute('aria-level'), one.cells[0].title, one.cells[2].textContent.replace(/[▾▸]/, '').trim()]));
    const tree = t.print('heap.quern', '--view=top-down', '--by=count', '--threshold=0.001');
    const first = tree.nodes.filter((node) => node[0] === 0).map((node) => [exact(node[2], 'blocks'), tree.functions[node[1]][0]]);
    const shown = rows.filter((row) => row[0] === '1').map((row) => row.slice(1));
    assert.deepEqual(shown.sort(), first.sort());
    await page.focus('tbody tr[tabindex="0"]');
    const count = rows.length;
    await page.keyboard.press('ArrowLeft');
    await page.waitForFunction((old) => document.querySelectorAll('tbody tr').length < old, count);
    await page.keyboard.press('ArrowRight');
    await page.waitForFunction((old) => document.querySelectorAll('tbody tr').length === old, count);
  },

  async page_timeline_window(t) {
    const page = await t.show('heap.quern', 'timeline');
    const box = await page.locator('.chart svg').boundingBox();
    await page.mouse.move(box.x + 200, box.y + 100);
    await page.mouse.down();
    await page.mouse.move(box.x + 500, box.y + 120, { steps: 4 });
    await page.mouse.up();
    await page.waitForFunction(() => /from=/.test(location.hash));
    await page.click('nav.views >> text=Overview');
    await t.settled();
    const words = new URLSearchParams(new URL(page.url()).hash.slice(1));
    const part = t.print('heap.quern', `--from=${(Number(words.get('from')) / 1e9).toFixed(9)}`, `--to=${(Number(words.get('to')) / 1e9).toFixed(9)}`);
    const shown = await page.getAttribute('[data-fact=allocations]', 'data-value');
    assert.equal(shown, String(part.facts.find((fact) => fact.label === 'allocations').value));
    assert.notEqual(shown, String(t.print('heap.quern').facts.find((fact) => fact.label === 'allocations').value));
    await page.click('.window-chip button');
    await page.waitForFunction(() => !/from=/.test(location.hash));
    await t.show('heap.quern', 'timeline', { stacked: '1' });
    assert.ok((await texts(page, '.legend .name')).some((text) => text.startsWith('inner')));
    await t.shot('heap-stacked');
  },

  async page_massif_views(t) {
    await everyView(t, 'massif.peer', ['timeline', 'flame']);
    await t.open();
    const page = await t.show('massif.ours', 'timeline');
    const snapshots = t.print('massif.ours', '--view=timeline').points;
    assert.equal((await page.$$('circle.snapshot')).length, snapshots.length);
    await page.locator('circle.peak').first().click();
    await page.waitForFunction(() => /from=/.test(location.hash));
  },

  async page_findings(t) {
    await everyView(t, 'memcheck.peer', ['findings']);
    await t.open({ permissions: ['clipboard-read', 'clipboard-write'] });
    for (const name of ['memcheck.ours', 'memcheck.peer']) {
      const page = await t.show(name, 'findings');
      const wanted = t.print(name, '--view=findings', '--top=1000').rows;
      const shown = await page.$$eval('.table-scroll tbody tr', (all) => all.map((one) => one.cells[1].textContent));
      assert.deepEqual(shown, wanted.map((row) => row.what), name);
      const place = wanted.findIndex((row) => row.sections.filter((part) => part.frames.length).length > 1);
      await page.click(`.table-scroll tbody tr:nth-child(${place + 1})`);
      await page.waitForFunction((what) => document.querySelector('.finding h3').textContent === what, wanted[place].what);
      const stacks = await page.$$eval('.finding .stack', (all) => all.map((one) => [...one.querySelectorAll('b')].map((name) => name.textContent)));
      assert.deepEqual(stacks, wanted[place].sections.filter((part) => part.frames.length).map((part) => part.frames.map((frame) => frame.function || '???')));
      await page.click('text=Copy suppression');
      assert.equal(await page.evaluate(() => navigator.clipboard.readText()), wanted[place].suppression.join('\n') + '\n');
    }
  },

  async page_calls_and_source(t) {
    await everyView(t, 'callgrind.peer', ['calls', 'source', 'map']);
    await t.open();
    for (const name of ['callgrind.ours', 'callgrind.peer']) {
      const page = await t.show(name, 'calls');
      const wanted = t.print(name, '--view=costs', '--top=10').rows;
      const shown = await titles(page, '.table-scroll tbody tr td:nth-child(1)');
      assert.deepEqual(shown.slice(0, 10), wanted.map((row) => String(row.inclusive)));
      await page.fill('#search', 'grow');
      await page.waitForFunction(() => /^grow/.test(document.querySelector('section > h3')?.textContent || ''));
      assert.ok((await texts(page, '.graph .node text:first-of-type')).some((text) => text.startsWith('deeper')));
      await page.locator('.pair tbody tr', { hasText: 'deeper' }).last().click();
      await page.waitForFunction(() => /^deeper/.test(document.querySelector('section > h3')?.textContent || ''));
      await page.click('section > h3 >> text=Source');
      await page.waitForSelector('.source tr.hot');
      assert.ok((await texts(page, '.source .code')).some((text) => text.includes('deeper(depth - 1, size)')));
    }
  },

  async page_points(t) {
    await everyView(t, 'dhat.peer', ['points', 'flame']);
    await t.open();
    for (const name of ['dhat.ours', 'dhat.peer']) {
      const page = await t.show(name, 'points', { sort: 'tb' });
      const wanted = t.print(name, '--view=points', '--top=3000').rows.sort((a, b) => b.tb - a.tb || a.point - b.point);
      const shown = await titles(page, '.table-scroll tbody tr td:nth-child(2)');
      assert.deepEqual(shown.slice(0, 10), wanted.slice(0, 10).map((row) => exact(row.tb, 'bytes')), name);
      const place = wanted.findIndex((row) => row.accesses);
      await page.goto(page.url() + `&select=${wanted[place].point}`);
      await page.waitForSelector('.accesses td');
      assert.deepEqual((await texts(page, '.accesses td')).map(Number), wanted[place].accesses.slice(0, 4096));
      assert.deepEqual(await texts(page, '[data-testid=point] .stack li'), wanted[place].frames);
    }
  },

  // Zooming into 200,000 functions: how long the page works, and so does not answer, at most. It is
  // CPU time: on a busy machine a task takes longer, but is no longer.
  async page_large_graph(t) {
    t.origin = t.settings.large;
    const page = await t.open();
    const session = await t.context.newCDPSession(page);
    await session.send('Performance.enable', { timeDomain: 'threadTicks' });
    const worked = async () => (await session.send('Performance.getMetrics')).metrics
      .find((one) => one.name === 'TaskDuration').value * 1000;
    await page.goto(`${t.settings.large}#view=flame&icicle=1`);
    await page.waitForSelector('.flame', { timeout: 300000 });
    const times = [];
    for (let i = 0; i < 5; i++) {
      const before = await worked();
      await page.focus('.flame');
      await page.keyboard.press('ArrowDown');
      await page.keyboard.press('Enter');
      await page.waitForFunction((count) => document.querySelectorAll('.crumbs button').length === count, i + 2, { timeout: 120000 });
      await t.settled();
      times.push(await worked() - before);
    }
    console.log(`# zooming in a graph of 200,000 functions: ${times.map((one) => one.toFixed(0)).join(', ')} ms of work`);
    times.sort((a, b) => a - b);
    assert.ok(times[2] < 200, `the page works for ${times[2]} ms`);
  },

  async page_map(t) {
    const page = await t.show('heap.quern', 'map');
    const box = await page.locator('.map').boundingBox();
    await page.mouse.move(box.x + box.width / 4, box.y + box.height / 2);
    const name = await page.textContent('[data-testid=selected] .name');
    await page.mouse.click(box.x + box.width / 4, box.y + box.height / 2);
    await page.waitForFunction(() => /node=/.test(location.hash));
    await t.settled();
    assert.equal(await page.textContent('[data-testid=selected] .name'), name);
  },

  async page_diff(t) {
    const after = String(t.settings.names.indexOf('callgrind.peer'));
    await everyView(t, 'callgrind.ours', ['diff'], { diff: { after } });
    await t.open();
    const page = await t.show('callgrind.ours', 'diff', { after });
    const before = t.print('callgrind.ours').metrics[0].total, then = t.print('callgrind.peer').metrics[0].total;
    assert.equal(await page.getAttribute('[data-testid=diff-sum] b', 'title'), exact(then - before, 'Ir'));
  },

  async page_query(t) {
    await everyView(t, 'heap.quern', ['query']);
    await t.open();
    const page = await t.show('heap.quern', 'query');
    await page.fill('#sql', 'SELECT function, count(*) AS blocks FROM allocations JOIN frames USING (stack) WHERE depth = 0 GROUP BY function ORDER BY blocks DESC');
    await page.click('button[type=submit]');
    await page.waitForSelector('tbody tr');
    const rows = t.print('heap.quern', '--view=functions', '--by=count', '--top=100').rows.filter((row) => row.self);
    const shown = await page.$$eval('tbody tr', (all) => all.map((one) => [...one.cells].map((cell) => cell.textContent)));
    assert.deepEqual(shown.map((row) => row[1]), rows.map((row) => String(row.self)));
    await page.fill('#sql', 'DROP TABLE stacks');
    await page.click('button[type=submit]');
    await page.waitForSelector('.problem');
  },

  async page_damaged_files(t) {
    for (const name of ['damaged.quern', 'nothing', 'massif.damaged']) {
      const page = await t.show(name, 'overview');
      await t.shot(name);
      assert.ok((await page.textContent('[data-testid=problem]')).length > 10, name);
      await t.accessible(name);
    }
    const page = await t.show('cut.quern', 'overview');
    assert.match(await page.textContent('.notice'), /cut off/);
  },

  async page_csv(t) {
    const page = await t.show('heap.quern', 'functions', { metric: 'count' });
    const [file] = await Promise.all([page.waitForEvent('download'), page.click('text=Download CSV')]);
    const stream = await file.createReadStream();
    let text = '';
    for await (const part of stream) text += part;
    const rows = t.print('heap.quern', '--view=functions', '--by=count', '--top=1000').rows;
    const lines = text.trim().split('\r\n');
    assert.equal(lines.length, rows.length + 1);
    assert.equal(lines[0], 'self,total,name,library');
    assert.equal(lines[1].split(',')[0], String(rows[0].self));
  },

  // One file, opened from disk, with the network switched off.
  async page_html_file(t) {
    for (const name of ['heap.quern', 'callgrind.peer', 'massif.ours', 'memcheck.ours', 'dhat.peer']) {
      const path = join(t.settings.folder, `${name}.html`);
      execFileSync(t.settings.quern, ['export', t.settings.files[name], '--as=html', '-o', path]);
      await t.open({ offline: true });
      const page = t.page;
      const address = pathToFileURL(path).href;
      await page.goto(`${address}#view=functions`);
      await page.waitForSelector('tbody tr td:nth-child(3)');
      const wanted = t.print(name, '--view=functions', '--top=10');
      assert.deepEqual((await texts(page, 'tbody tr td:nth-child(3)')).slice(0, wanted.rows.length), wanted.rows.map((row) => row.name));
      for (const view of (await t.print(name)).views.filter((view) => !['query', 'source'].includes(view))) {
        await page.goto(`${address}#view=${view}`);
        await t.settled();
        assert.equal(await page.$$eval('.problem', (all) => all.length), 0, `${view} of ${name}`);
      }
      await page.goto(`${address}#view=flame&search=main`);
      await page.waitForFunction(() => document.querySelector('[data-testid=match]')?.textContent);
      await t.shot(`file-${name}`);
      await t.context.close();
      t.page = null;
    }
  },
};
