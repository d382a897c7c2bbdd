// Two files compared: what grew, what shrank, and where in the tree of calls.
import { useMemo } from 'preact/hooks';
import { useAnswer, type FileState } from './ask';
import { amount, change, exact, percent } from './format';
import { Check, Problem, useWidth, Waiting } from './parts';
import type { Shown } from './shown';
import { listed, Table, useSorted, type Column } from './table';

interface Changed {
  name: string;
  library: string;
  self_before: number;
  self_after: number;
  total_before: number;
  total_after: number;
}

interface Diff {
  metric: string;
  unit: string;
  before: number;
  after: number;
  count: number;
  functions: Changed[];
  nodes: [number, string, string, number, number][]; // parent, name, library, before, after
}

// The numbers of the files that can be compared with one: others of its kind.
export function comparable(files: FileState[], file: number): number[] {
  return files.map((_, i) => i).filter((i) => i !== file && files[i].kind !== null && files[i].kind === files[file]?.kind);
}

export function Compare({ shown }: { shown: Shown }) {
  const { state, go, metric, files } = shown;
  const others = comparable(files, state.file);
  const other = others.includes(Number(state.after)) && state.after !== '' ? Number(state.after) : others.find((i) => i > state.file) ?? others[0];
  const answer = useAnswer<Diff>('diff', { file: state.file, after: other, metric: metric.name, invert: state.invert });
  return (
    <section>
      <div class="controls">
        <label class="field">
          <b>{files[state.file].name}</b> → 
          <select aria-label="The file to compare with" value={String(other)} onChange={(event) => go({ after: (event.target as HTMLSelectElement).value })}>
            {others.map((i) => <option key={i} value={String(i)}>{files[i].name}</option>)}
          </select>
        </label>
        <Check label="Invert" value={state.invert} set={(invert) => go({ invert, node: '', open: '' })} />
      </div>
      {answer.problem ? <Problem text={answer.problem} /> : answer.value ? <Changes diff={answer.value} shown={shown} /> : <Waiting />}
    </section>
  );
}

function Changes({ diff, shown }: { diff: Diff; shown: Shown }) {
  const { state, go } = shown;
  const sort = state.sort || 'change';
  const tone = (value: number) => (value > 0 ? 'more' : value < 0 ? 'less' : '');
  const columns: Column<Changed>[] = [
    {
      key: 'change', label: 'Change', hint: 'Of the function itself', numeric: true, sortable: true,
      text: (row) => row.self_after - row.self_before, title: (row) => exact(row.self_after - row.self_before, diff.unit),
      show: (row) => <span class={tone(row.self_after - row.self_before)}>{change(row.self_after - row.self_before, diff.unit)}</span>,
    },
    { key: 'before', label: 'Before', numeric: true, sortable: true, text: (row) => row.self_before, show: (row) => amount(row.self_before, diff.unit), title: (row) => exact(row.self_before, diff.unit) },
    { key: 'after', label: 'After', numeric: true, sortable: true, text: (row) => row.self_after, show: (row) => amount(row.self_after, diff.unit), title: (row) => exact(row.self_after, diff.unit) },
    {
      key: 'total', label: 'Change with callees', numeric: true, sortable: true, text: (row) => row.total_after - row.total_before,
      title: (row) => exact(row.total_after - row.total_before, diff.unit),
      show: (row) => <span class={tone(row.total_after - row.total_before)}>{change(row.total_after - row.total_before, diff.unit)}</span>,
    },
    { key: 'name', label: 'Function', wide: true, sortable: true, text: (row) => row.name },
    { key: 'library', label: 'Library', text: (row) => row.library },
  ];
  // By size of the change, whichever way.
  const byChange = useMemo(() => diff.functions.filter((row) => row.self_after !== row.self_before || row.total_after !== row.total_before).sort((a, b) =>
    Math.abs(b.self_after - b.self_before) - Math.abs(a.self_after - a.self_before)), [diff]);
  const sorted = useSorted(byChange, columns, sort === 'change' ? '' : sort);
  return (
    <>
      <p class="sum" data-testid="diff-sum">
        {amount(diff.before, diff.unit)} → {amount(diff.after, diff.unit)}:{' '}
        <b class={tone(diff.after - diff.before)} title={exact(diff.after - diff.before, diff.unit)}>{change(diff.after - diff.before, diff.unit)}</b>{' '}
        ({diff.after > diff.before ? '+' : ''}{percent(diff.after - diff.before, diff.before)})
      </p>
      <Both diff={diff} />
      {byChange.length < diff.count && <p class="hint">{(diff.count - byChange.length).toLocaleString('en')} functions are the same in both, or changed least.</p>}
      <Table label="Changes by function" columns={columns} source={listed(sorted)} sort={sort} setSort={(sort) => go({ sort })} name="changes" />
    </>
  );
}

const ROW = 20, DEPTH = 60;

// An icicle of both: width is the larger of the two, the colour tells which way it went.
function Both({ diff }: { diff: Diff }) {
  const [outer, width] = useWidth<HTMLDivElement>();
  const boxes = useMemo(() => {
    const weight = diff.nodes.map((node) => Math.max(node[3], node[4]));
    const inside = diff.nodes.map(() => 0);
    diff.nodes.forEach((node, i) => node[0] >= 0 && (inside[node[0]] += weight[i]));
    const out: { index: number; from: number; share: number; depth: number }[] = [];
    const next: number[] = [];
    diff.nodes.forEach((node, i) => {
      const parent = node[0] >= 0 ? out[node[0]] : null;
      // Children that went opposite ways may need more than their parent has.
      const share = parent ? (parent.share * weight[i]) / Math.max(weight[node[0]], inside[node[0]], 1) : 1;
      const from = parent ? next[node[0]] : 0;
      if (parent) next[node[0]] = from + share;
      next[i] = from;
      out.push({ index: i, from, share, depth: parent ? parent.depth + 1 : 0 });
    });
    return out;
  }, [diff]);
  const seen = boxes.filter((box) => box.share * width >= 1 && box.depth < DEPTH);
  const depth = Math.max(0, ...seen.map((box) => box.depth)) + 1;
  return (
    <div class="both" ref={outer} tabIndex={0} role="region" aria-label="Changes along the tree of calls">
      <svg width={width} height={depth * ROW}>
        {seen.map((box) => {
          const node = diff.nodes[box.index];
          const delta = node[4] - node[3], share = Math.min(1, Math.abs(delta) / Math.max(node[3], node[4], 1));
          const wide = box.share * width, name = node[1] || 'everything';
          const letters = Math.floor((wide - 8) / 7);
          return (
            <g key={box.index} transform={`translate(${box.from * width},${box.depth * ROW})`}>
              <title>{`${name}\n${node[2]}\n${exact(node[3], diff.unit)} → ${exact(node[4], diff.unit)}`}</title>
              <rect class={delta > 0 ? 'grew' : delta < 0 ? 'shrank' : 'same'} width={Math.max(wide - 0.6, 0.5)} height={ROW - 1}
                fill-opacity={delta ? 0.25 + 0.75 * share : 1} />
              {letters > 3 && <text class="box-text" x="4" y="14">{name.length > letters ? name.slice(0, letters - 1) + '…' : name}</text>}
            </g>
          );
        })}
      </svg>
    </div>
  );
}
