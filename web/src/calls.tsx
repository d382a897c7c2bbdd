// Functions with costs: who calls them, whom they call, the graph around one.
import { useEffect } from 'preact/hooks';
import { ask, offline, useAnswer } from './ask';
import { amount, exact, number, percent } from './format';
import { Problem, Search, useWidth, Waiting } from './parts';
import type { Shown } from './shown';
import { listed, Table, usePages, type Column } from './table';
import { colour } from './tree';

export interface CostFunction {
  function: number;
  name: string;
  object: string;
  file: string;
  line: number; // where it begins; 0: not known
  own: number;
  inclusive: number;
}

interface Listed extends CostFunction {
  called: number;
}

interface Other extends CostFunction {
  count: number;
  cost: number;
}

interface Around extends CostFunction {
  total: number;
  callers: Other[];
  callees: Other[];
  nodes: (CostFunction & { level: number })[];
  edges: [number, number, number, number][];
}

interface Costs {
  total: number;
  count: number;
  rows: Listed[];
}

export const base = (path: string) => path.slice(path.lastIndexOf('/') + 1);

export function useCosts(shown: Shown) {
  const { state, metric } = shown;
  const sort = ['own', 'inclusive', 'name'].includes(state.sort) ? state.sort : 'inclusive';
  const key = ['costs', state.file, metric.name, sort, state.search].join('|');
  const load = async (offset: number, count: number): Promise<Costs> => {
    const answer = await ask<Costs>('costs', { file: state.file, metric: metric.name, sort, search: state.search, offset, count });
    if (!offline) return answer;
    const wanted = state.search.toLowerCase();
    const rows = answer.rows.filter((row) => !wanted || row.name.toLowerCase().includes(wanted));
    rows.sort((a, b) => (sort === 'name' ? a.name.localeCompare(b.name) : sort === 'own' ? b.own - a.own : b.inclusive - a.inclusive));
    return { ...answer, rows: rows.slice(offset, offset + count), count: rows.length };
  };
  return { sort, ...usePages<Listed, Costs>(key, load) };
}

export function Calls({ shown }: { shown: Shown }) {
  const { state, go, metric } = shown;
  const { sort, head, problem, source } = useCosts(shown);
  // What the program itself does is below its start.
  const first = head?.rows.find((row) => row.name === 'main') || head?.rows.find((row) => !/^\(below main\)|^0x|^_start$/.test(row.name)) || head?.rows[0];
  const chosen = state.select || (first ? String(first.function) : '');
  const around = useAnswer<Around>(chosen ? 'calls' : null, { file: state.file, metric: metric.name, function: chosen });
  if (problem) return <Problem text={problem} />;
  if (!head) return <Waiting />;
  const columns: Column<Listed>[] = [
    {
      key: 'inclusive', label: 'With callees', numeric: true, sortable: true, text: (row) => row.inclusive,
      show: (row) => <>{number(row.inclusive)} <small>{percent(row.inclusive, head.total)}</small></>,
    },
    { key: 'own', label: 'Itself', numeric: true, sortable: true, text: (row) => row.own, show: (row) => <>{number(row.own)} <small>{percent(row.own, head.total)}</small></> },
    { key: 'called', label: 'Called', numeric: true, text: (row) => row.called, show: (row) => number(row.called) },
    { key: 'name', label: 'Function', sortable: true, wide: true, text: (row) => row.name, title: (row) => `${row.name}\n${row.file}\n${row.object}` },
    { key: 'object', label: 'Object', text: (row) => base(row.object), title: (row) => row.object },
  ];
  return (
    <section>
      <div class="controls">
        <Search id="search" value={state.search} label="Search functions" set={(search) => go({ search, select: '' }, true)} />
      </div>
      <Table label="Functions" columns={columns} source={source} sort={sort} setSort={(sort) => go({ sort })} name="costs"
        onRow={(row) => go({ select: String(row.function) })} selected={(row) => String(row.function) === chosen} />
      {around.problem ? <Problem text={around.problem} /> : around.value ? <Neighbours around={around.value} shown={shown} /> : around.waiting && <Waiting />}
    </section>
  );
}

function Neighbours({ around, shown }: { around: Around; shown: Shown }) {
  const { go, metric } = shown;
  const columns = (who: string): Column<Other>[] => [
    { key: 'cost', label: metric.name, hint: 'Spent in these calls', numeric: true, text: (row) => row.cost, show: (row) => <>{number(row.cost)} <small>{percent(row.cost, around.inclusive)}</small></> },
    { key: 'count', label: 'Calls', numeric: true, text: (row) => row.count, show: (row) => number(row.count) },
    { key: 'name', label: who, wide: true, text: (row) => row.name, title: (row) => `${row.name}\n${row.object}` },
  ];
  const open = (row: Other) => go({ select: String(row.function) });
  return (
    <>
      <h3 title={around.file}>{around.name} <span class="quiet">{base(around.object)}</span>{' '}
        <span class="buttons">
          {['source', 'assembly'].filter((view) => shown.overview.views.includes(view)).map((view) => (
            <button type="button" key={view} onClick={() => go({ view, select: String(around.function) })}>{view === 'source' ? 'Source' : 'Assembly'}</button>
          ))}
          <button type="button" onClick={() => go({ view: 'flame', search: around.name, node: '' })}>Flame graph</button>
        </span></h3>
      <p class="quiet">{percent(around.inclusive, around.total)} with callees, {percent(around.own, around.total)} itself{around.file && around.file !== '???' ? `, in ${around.file}` : ''}</p>
      <Graph around={around} shown={shown} />
      <div class="pair">
        <div><h4>Callers</h4><Table label="Callers" columns={columns('Caller')} source={listed(around.callers)} name="callers" onRow={open} /></div>
        <div><h4>Callees</h4><Table label="Callees" columns={columns('Callee')} source={listed(around.callees)} name="callees" onRow={open} /></div>
      </div>
    </>
  );
}

const BOX = 170, BOX_HEIGHT = 40, GAP = 36, LINE = 14;

// Columns by distance: callers to the left, callees to the right.
function Graph({ around, shown }: { around: Around; shown: Shown }) {
  const { go, metric, dark } = shown;
  const [outer, width] = useWidth<HTMLDivElement>();
  const levels = new Map<number, number[]>();
  around.nodes.forEach((node, i) => levels.set(node.level, [...(levels.get(node.level) || []), i]));
  const order = [...levels.keys()].sort((a, b) => a - b);
  const tallest = Math.max(...[...levels.values()].map((list) => list.length));
  const height = tallest * (BOX_HEIGHT + LINE) + LINE;
  const wide = Math.max(width, order.length * (BOX + GAP));
  const places = new Map<number, [number, number]>();
  order.forEach((level, column) => {
    const list = levels.get(level)!;
    const x = (wide / order.length) * column + (wide / order.length - BOX) / 2;
    list.forEach((node, row) => places.set(node, [x, (height - list.length * (BOX_HEIGHT + LINE)) / 2 + row * (BOX_HEIGHT + LINE) + LINE / 2]));
  });
  const most = Math.max(1, ...around.edges.map((edge) => edge[3]));
  // The function itself is in sight first.
  useEffect(() => {
    const box = outer.current, middle = places.get(around.nodes.findIndex((node) => node.level === 0));
    if (!box || !middle) return;
    box.scrollTop = middle[1] + BOX_HEIGHT / 2 - box.clientHeight / 2;
    box.scrollLeft = middle[0] + BOX / 2 - box.clientWidth / 2;
  }, [around.function, width]);
  return (
    <div class="graph" ref={outer} tabIndex={0} role="region" aria-label="Call graph around the function">
      <svg width={wide} height={height}>
        {around.edges.map(([from, to, count, cost], i) => {
          const [fx, fy] = places.get(from)!, [tx, ty] = places.get(to)!;
          const back = tx <= fx;
          const x1 = back ? fx + BOX / 2 : fx + BOX, y1 = back ? fy + BOX_HEIGHT : fy + BOX_HEIGHT / 2;
          const x2 = back ? tx + BOX / 2 : tx, y2 = back ? ty : ty + BOX_HEIGHT / 2;
          const middle = (x1 + x2) / 2;
          return (
            <path key={i} class="edge" d={`M${x1},${y1}C${middle},${y1} ${middle},${y2} ${x2},${y2}`} stroke-width={1 + (5 * cost) / most}>
              <title>{`${around.nodes[from].name} → ${around.nodes[to].name}\n${number(count)} calls, ${exact(cost, metric.unit)}`}</title>
            </path>
          );
        })}
        {around.nodes.map((node, i) => {
          const [x, y] = places.get(i)!;
          const name = node.name.length > 22 ? node.name.slice(0, 21) + '…' : node.name;
          return (
            <g key={i} class={node.level === 0 ? 'node middle' : 'node'} transform={`translate(${x},${y})`} role="button" tabindex={0}
              onClick={() => go({ select: String(node.function) })}
              onKeyDown={(event) => event.key === 'Enter' && go({ select: String(node.function) })}>
              <title>{`${node.name}\n${node.object}\nwith callees ${exact(node.inclusive, metric.unit)}, itself ${exact(node.own, metric.unit)}`}</title>
              <rect width={BOX} height={BOX_HEIGHT} rx="5" fill={colour(node.name, base(node.object), dark)} />
              <text x="8" y="17">{name}</text>
              <text x="8" y="32" class="small">{percent(node.inclusive, around.total)} · {amount(node.inclusive, metric.unit)}</text>
            </g>
          );
        })}
      </svg>
    </div>
  );
}
