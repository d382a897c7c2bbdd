// DHAT's program points: how blocks allocated at a stack were used.
import { ask, offline } from './ask';
import { amount, exact, number, percent } from './format';
import { CopyButton, Problem, Search, Waiting } from './parts';
import type { Shown } from './shown';
import { selected, Table, usePages, type Column } from './table';

interface Point {
  point: number;
  tb: number; tbk: number; tl: number; mb: number; mbk: number; gb: number; gbk: number;
  eb: number; ebk: number; rb: number; wb: number;
  frames: string[];
  accesses?: number[];
}

interface Answer {
  verb: string;
  unit: string;
  blocks: string;
  time: string;
  lifetimes: boolean;
  accesses: boolean;
  count: number;
  rows: Point[];
}

const sorts: [string, string][] = [
  ['gb', 'bytes at the global peak'], ['tb', 'bytes in all'], ['tbk', 'blocks in all'], ['mb', 'bytes at its own peak'],
  ['eb', 'bytes at the end'], ['rb', 'bytes read'], ['wb', 'bytes written'], ['life', 'shortest lives'],
  ['unused', 'never read or never written'],
];

const bare = (frame: string) => frame.replace(/^0x[0-9A-Fa-f]+: /, '');

// Without the allocator itself.
function own(point: Point): string[] {
  const at = point.frames.findIndex((one) => !/: (malloc|calloc|realloc|operator new|memalign)\b/.test(one));
  return point.frames.slice(Math.max(0, at)).map(bare);
}

function first(point: Point): string {
  return own(point)[0] ?? '';
}

// The function and who called it, recursion once.
function trail(point: Point): string {
  const names = own(point).map((frame) => frame.replace(/ \((in )?[^)]*\)$/, ''));
  return [first(point), ...names.slice(1).filter((name, i) => name !== names[i]).slice(0, 4)].join(' ← ');
}

function order(sort: string): (a: Point, b: Point) => number {
  if (sort === 'life') return (a, b) => a.tl / (a.tbk || 1) - b.tl / (b.tbk || 1);
  if (sort === 'unused') return (a, b) => (b.rb && b.wb ? 0 : b.tb) - (a.rb && a.wb ? 0 : a.tb);
  return (a, b) => (b[sort as 'tb'] as number) - (a[sort as 'tb'] as number);
}

export function Points({ shown }: { shown: Shown }) {
  const { state, go } = shown;
  const sort = sorts.some(([name]) => name === state.sort) ? state.sort : 'gb';
  const key = ['points', state.file, sort, state.search].join('|');
  const load = async (offset: number, count: number): Promise<Answer> => {
    const answer = await ask<Answer>('points', { file: state.file, sort, search: state.search, offset, count: Math.min(count, 3000) });
    if (!offline) return answer;
    const wanted = state.search.toLowerCase();
    const rows = answer.rows.filter((row) => !wanted || row.frames.some((frame) => frame.toLowerCase().includes(wanted))).sort(order(sort));
    return { ...answer, rows: rows.slice(offset, offset + count), count: rows.length };
  };
  const { head, problem, source } = usePages<Point, Answer>(key, load);
  if (problem) return <Problem text={problem} />;
  if (!head) return <Waiting />;
  const bytes = (name: 'gb' | 'tb' | 'eb' | 'rb' | 'wb', label: string, hint: string): Column<Point> => ({
    key: name, label, hint, numeric: true, sortable: true, text: (row) => row[name], show: (row) => amount(row[name], head.unit),
    title: (row) => exact(row[name], head.unit),
  });
  const columns: Column<Point>[] = [
    bytes('gb', 'At peak', 'Bytes when the whole heap was largest'),
    bytes('tb', 'In all', 'All bytes'),
    { key: 'tbk', label: 'Blocks', numeric: true, sortable: true, text: (row) => row.tbk, show: (row) => number(row.tbk) },
    bytes('eb', 'At end', 'Bytes at the end'),
    ...(head.lifetimes ? [{ key: 'life', label: `Life, ${head.time === 'instrs' ? 'instr.' : head.time}`, hint: 'Average lifetime', numeric: true, sortable: true,
      text: (row: Point) => Math.round(row.tl / (row.tbk || 1)), show: (row: Point) => number(row.tl / (row.tbk || 1)),
      title: (row: Point) => exact(Math.round(row.tl / (row.tbk || 1)), head.time) }] : []),
    ...(head.accesses ? [bytes('rb', 'Read', 'Bytes read'), bytes('wb', 'Written', 'Bytes written')] : []),
    { key: 'where', label: 'Where', text: trail, wide: true, title: (row) => row.frames.join('\n') },
  ];
  const chosen = selected(source, state.select, (row) => String(row.point));
  return (
    <section>
      <div class="controls">
        <label class="field">
          Sort by
          <select value={sort} onChange={(event) => go({ sort: (event.target as HTMLSelectElement).value, select: '' })}>
            {sorts.map(([name, text]) => <option key={name} value={name}>{text}</option>)}
          </select>
        </label>
        <Search id="search" value={state.search} label="Search frames" set={(search) => go({ search, select: '' }, true)} />
      </div>
      <Table label="Program points" columns={columns} source={source} sort={sort} setSort={(sort) => go({ sort, select: '' })} name="points"
        onRow={(row) => go({ select: String(row.point) })} selected={(row) => row === chosen} />
      {chosen && <Details point={chosen} head={head} />}
    </section>
  );
}

function Details({ point, head }: { point: Point; head: Answer }) {
  const ratio = (value: number) => (point.tb ? (value / point.tb).toFixed(2) : '–');
  const facts: [string, string][] = [
    [`${head.verb}`, `${exact(point.tb, head.unit)} in ${exact(point.tbk, head.blocks)}, ${number(point.tb / (point.tbk || 1))} on average`],
    ['At its own peak', `${exact(point.mb, head.unit)} in ${exact(point.mbk, head.blocks)}`],
    ['At the global peak', `${exact(point.gb, head.unit)} in ${exact(point.gbk, head.blocks)}`],
    ['At the end', `${exact(point.eb, head.unit)} in ${exact(point.ebk, head.blocks)} (${percent(point.eb, point.tb)})`],
  ];
  if (head.lifetimes) facts.push(['Average lifetime', exact(Math.round(point.tl / (point.tbk || 1)), head.time)]);
  if (head.accesses) facts.push(['Read', `${exact(point.rb, head.unit)}, ${ratio(point.rb)} for each byte`], ['Written', `${exact(point.wb, head.unit)}, ${ratio(point.wb)} for each byte`]);
  return (
    <article class="finding" aria-label="Program point" data-testid="point">
      <h3>{first(point)}</h3>
      <dl class="lines">{facts.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
      {point.accesses && point.accesses.length > 0 && <Accesses values={point.accesses} />}
      <h4>Stack</h4>
      <ol class="stack">{point.frames.map((frame, i) => <li key={i}>{frame}</li>)}</ol>
      <div class="table-tools"><CopyButton text={() => [...facts.map((fact) => fact.join(': ')), ...point.frames].join('\n')}>Copy as text</CopyButton></div>
    </article>
  );
}

const COLUMNS = 32;
const SATURATED = 0xffff; // DHAT counts no further

// Accesses of each byte of a block; the darker, the more.
function Accesses({ values }: { values: number[] }) {
  const most = Math.max(1, ...values);
  const rows: number[][] = [];
  for (let i = 0; i < values.length && i < 4096; i += COLUMNS) rows.push(values.slice(i, i + COLUMNS));
  return (
    <>
      <h4>Accesses of each byte</h4>
      <div class="table-scroll" tabIndex={0} role="region" aria-label="Accesses of each byte">
        <table class="accesses">
          <tbody>
            {rows.map((row, i) => (
              <tr key={i}>
                <th scope="row">{i * COLUMNS}</th>
                {row.map((value, j) => (
                  <td key={j} title={`byte ${i * COLUMNS + j}: ${number(value)} accesses`} class={value ? '' : 'none'}
                    style={value ? { background: `color-mix(in srgb, var(--bar) ${Math.round(15 + (60 * value) / most)}%, var(--back))` } : {}}>
                    {value < 10000 ? value : value < SATURATED ? `${Math.floor(value / 1000)}k` : '∞'}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {values.length > 4096 && <p class="hint">Only the first 4,096 bytes are shown.</p>}
    </>
  );
}
