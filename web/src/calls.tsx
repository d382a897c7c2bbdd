// Functions with costs: who calls them, whom they call, the graph around one, and its source.
import { ask, offline, useAnswer } from './ask';
import { amount, exact, number, percent } from './format';
import { Problem, Search, useWidth, Waiting } from './parts';
import type { Shown } from './shown';
import { listed, Table, usePages, type Column } from './table';
import { colour } from './tree';

interface CostFunction {
  function: number;
  name: string;
  object: string;
  file: string;
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

const base = (path: string) => path.slice(path.lastIndexOf('/') + 1);

function useCosts(shown: Shown) {
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
  const chosen = state.select || (head?.rows[0] ? String(head.rows[0].function) : '');
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
      {around.problem ? <Problem text={around.problem} /> : around.value ? <Neighbours around={around.value} shown={shown} /> : <Waiting />}
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
        {!offline && <button type="button" onClick={() => go({ view: 'source', select: String(around.function) })}>Source</button>}</h3>
      <Graph around={around} shown={shown} />
      <div class="pair">
        <div><h4>Callers</h4><Table label="Callers" columns={columns('Caller')} source={listed(around.callers)} name="callers" onRow={open} /></div>
        <div><h4>Callees</h4><Table label="Callees" columns={columns('Callee')} source={listed(around.callees)} name="callees" onRow={open} /></div>
      </div>
    </>
  );
}

const BOX = 170, BOX_HEIGHT = 40, GAP = 60, LINE = 14;

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
            <g key={i} class={node.level === 0 ? 'node middle' : 'node'} transform={`translate(${x},${y})`} role="button" tabIndex={0}
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

interface Source extends CostFunction {
  total: number;
  found: boolean;
  lines: [number, number, number, string | null][];
}

export function SourceView({ shown }: { shown: Shown }) {
  const { state, go, metric } = shown;
  const { head } = useCosts(shown);
  const answer = useAnswer<Source>('source', { file: state.file, metric: metric.name, function: state.select });
  if (answer.problem) return <Problem text={answer.problem} />;
  if (!answer.value) return <Waiting />;
  const source = answer.value;
  const most = Math.max(1, ...source.lines.map((line) => line[1] + line[2]));
  let before = 0;
  return (
    <section>
      <div class="controls">
        <label class="field">
          Function
          <select value={String(source.function)} onChange={(event) => go({ select: (event.target as HTMLSelectElement).value })}>
            {!head?.rows.some((row) => row.function === source.function) && <option value={String(source.function)}>{source.name}</option>}
            {head?.rows.map((row) => <option key={row.function} value={String(row.function)}>{row.name}</option>)}
          </select>
        </label>
      </div>
      <h3 class="path" title={source.file}>{source.file}</h3>
      {!source.found && <p class="notice">The source is not here, or is none; the numbers are.</p>}
      <div class="table-scroll tall" tabIndex={0} role="region" aria-label="Source">
        <table class="source">
          <thead><tr><th scope="col" class="numeric">Itself</th><th scope="col" class="numeric">In calls</th><th scope="col" class="numeric">Line</th><th scope="col">Source</th></tr></thead>
          <tbody>
            {source.lines.map(([line, own, called, text]) => {
              const gap = before > 0 && line > before + 1;
              before = line;
              return (
                <>
                  {gap && <tr key={`gap${line}`} aria-hidden="true"><td colSpan={4} class="gap">⋯</td></tr>}
                  <tr key={line} class={own + called > most / 3 ? 'hot' : own + called ? 'warm' : ''}>
                    <td class="numeric" title={own ? exact(own, metric.unit) : ''}>{own ? <>{number(own)} <small>{percent(own, source.total)}</small></> : ''}</td>
                    <td class="numeric" title={called ? exact(called, metric.unit) : ''}>{called ? number(called) : ''}</td>
                    <td class="numeric quiet">{line}</td>
                    <td class="code">{text ?? ''}</td>
                  </tr>
                </>
              );
            })}
          </tbody>
        </table>
        {source.lines.length === 0 && <p class="empty">The profile has no lines of this file.</p>}
      </div>
    </section>
  );
}
