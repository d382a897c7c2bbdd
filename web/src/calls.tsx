// Functions with costs: who calls them, whom they call, the graph around one.
import { useEffect, useState } from 'preact/hooks';
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
  cycle: number; // the cycle that the function is in; 0: none
  members: number; // of a cycle: how many functions it has; 0: it is a function
}

interface Listed extends CostFunction {
  called: number;
}

interface Other extends CostFunction {
  count: number;
  cost: number; // 0 within a cycle: it is part of what the cycle costs
  within: boolean;
}

interface Around extends CostFunction {
  total: number;
  first_cycle: number; // its number; those of the others follow
  callers: Other[];
  callees: Other[];
  inside: CostFunction[]; // a cycle's functions
  nodes: (CostFunction & { level: number })[];
  edges: [number, number, number, number, number][]; // from, to, count, cost, within
}

interface Costs {
  total: number;
  count: number;
  rows: Listed[];
}

// A member of a cycle says so, as KCachegrind does.
const named = (row: CostFunction) => (row.cycle ? `${row.name} <cycle ${row.cycle}>` : row.name);
const titled = (row: CostFunction) => (row.members ? `${row.name}: ${row.members} functions that call each other` : `${named(row)}\n${row.file}\n${row.object}`);

export const base = (path: string) => path.slice(path.lastIndexOf('/') + 1);

export function useCosts(shown: Shown) {
  const { state, metric } = shown;
  const sort = ['own', 'inclusive', 'name'].includes(state.sort) ? state.sort : 'inclusive';
  const group = state.by && state.group ? { by: state.by, group: state.group } : {};
  const key = ['costs', state.file, metric.name, sort, state.search, state.by, state.group].join('|');
  const load = async (offset: number, count: number): Promise<Costs> => {
    const answer = await ask<Costs>('costs', { file: state.file, metric: metric.name, sort, search: state.search, offset, count, ...group });
    if (!offline) return answer;
    const wanted = state.search.toLowerCase();
    const rows = answer.rows.filter((row) => !wanted || row.name.toLowerCase().includes(wanted));
    rows.sort((a, b) => (sort === 'name' ? a.name.localeCompare(b.name) : sort === 'own' ? b.own - a.own : b.inclusive - a.inclusive));
    return { ...answer, rows: rows.slice(offset, offset + count), count: rows.length };
  };
  return { sort, ...usePages<Listed, Costs>(key, load) };
}

const NONE = '(none)'; // the group of functions without a class, or of unknown origin

interface Group {
  name: string;
  own: number;
  functions: number;
}

const kindsOfGroups: Record<string, string> = { class: 'Class', file: 'File', object: 'Object' };

// Sums by class, file or object. A row leads to its functions.
function Groups({ shown }: { shown: Shown }) {
  const { state, go, metric } = shown;
  const key = ['groups', state.file, metric.name, state.by].join('|');
  const load = (offset: number, count: number) =>
    ask<{ total: number; count: number; rows: Group[] }>('groups', { file: state.file, metric: metric.name, by: state.by, offset, count });
  const { head, problem, source } = usePages<Group, { total: number; count: number; rows: Group[] }>(key, load);
  if (problem) return <Problem text={problem} />;
  if (!head) return <Waiting />;
  const columns: Column<Group>[] = [
    { key: 'own', label: 'Self', numeric: true, text: (row) => row.own, show: (row) => <>{number(row.own)} <small>{percent(row.own, head.total)}</small></> },
    { key: 'functions', label: 'Functions', numeric: true, text: (row) => row.functions, show: (row) => number(row.functions) },
    { key: 'name', label: kindsOfGroups[state.by], wide: true, text: (row) => row.name || NONE, title: (row) => row.name || 'Functions without one' },
  ];
  return <Table label="Groups" columns={columns} source={source} name="groups" onRow={(row) => go({ group: row.name || NONE, select: '' })}
    selected={(row) => (row.name || NONE) === state.group} />;
}

function GroupChooser({ shown }: { shown: Shown }) {
  const { state, go } = shown;
  if (offline) return null;
  return (
    <>
      <label class="field">
        Group by
        <select value={kindsOfGroups[state.by] ? state.by : ''} onChange={(event) => go({ by: (event.target as HTMLSelectElement).value, group: '', select: '' })}>
          <option value="">nothing</option>
          {Object.entries(kindsOfGroups).map(([by, label]) => <option key={by} value={by}>{label.toLowerCase()}</option>)}
        </select>
      </label>
      {kindsOfGroups[state.by] && state.group && (
        <span class="window-chip">{state.group} <button type="button" onClick={() => go({ group: '', select: '' })}>all functions</button></span>
      )}
    </>
  );
}

// What a call costs on average, with what it calls. In a cycle, calls overlap.
function perCall(row: Listed): number | null {
  return row.called && !row.cycle && !row.members ? row.inclusive / row.called : null;
}

export function Calls({ shown }: { shown: Shown }) {
  const { state, go, metric } = shown;
  const { sort, head, problem, source } = useCosts(shown);
  // What the program itself does is below its start.
  const first = head?.rows.find((row) => row.name === 'main') || head?.rows.find((row) => !/^\(below main\)|^0x|\+0x[0-9a-f]+$|^_start$|^<cycle /.test(row.name)) || head?.rows[0];
  const chosen = state.select || (first ? String(first.function) : '');
  const around = useAnswer<Around>(chosen ? 'calls' : null, { file: state.file, metric: metric.name, function: chosen });
  if (problem) return <Problem text={problem} />;
  if (!head) return <Waiting />;
  const columns: Column<Listed>[] = [
    {
      key: 'inclusive', label: 'Inclusive', hint: 'With everything it calls', numeric: true, sortable: true, text: (row) => row.inclusive,
      show: (row) => <>{number(row.inclusive)} <small>{percent(row.inclusive, head.total)}</small></>,
    },
    { key: 'own', label: 'Self', hint: 'Without what it calls', numeric: true, sortable: true, text: (row) => row.own, show: (row) => <>{number(row.own)} <small>{percent(row.own, head.total)}</small></> },
    { key: 'called', label: 'Calls', hint: 'How often it was called', numeric: true, text: (row) => row.called, show: (row) => number(row.called) },
    { key: 'per_call', label: 'Per call', hint: 'Inclusive cost of one call, on average', numeric: true, text: (row) => perCall(row) ?? '', show: (row) => { const cost = perCall(row); return cost === null ? '' : cost < 10 ? cost.toFixed(1) : number(cost); } },
    { key: 'name', label: 'Function', sortable: true, wide: true, text: named, title: titled },
    { key: 'object', label: 'Object', text: (row) => base(row.object), title: (row) => row.object },
  ];
  return (
    <section>
      <div class="controls">
        <Search id="search" value={state.search} label="Search functions" set={(search) => go({ search, select: '' }, true)} />
        <GroupChooser shown={shown} />
      </div>
      {!offline && kindsOfGroups[state.by] && <Groups shown={shown} />}
      <Basis total={head.total} unit={metric.unit} />
      <Table label="Functions" columns={columns} source={source} sort={sort} setSort={(sort) => go({ sort })} name="costs"
        onRow={(row) => go({ select: String(row.function) })} selected={(row) => String(row.function) === chosen} />
      {around.problem ? <Problem text={around.problem} /> : around.value ? <Neighbours around={around.value} shown={shown} /> : around.waiting && <Waiting />}
    </section>
  );
}

function Basis({ total, unit }: { total: number; unit: string }) {
  return <p class="quiet">Percentages are shares of the whole program: {exact(total, unit)}.</p>;
}

function Neighbours({ around, shown }: { around: Around; shown: Shown }) {
  const { go, metric } = shown;
  const columns = (who: string): Column<Other>[] => [
    { key: 'cost', label: metric.name, hint: 'Spent in these calls, as a share of the whole program', numeric: true, text: (row) => row.cost, show: (row) => (row.within ? <span class="quiet" title="Part of what the cycle costs">recursion</span> : <>{number(row.cost)} <small>{percent(row.cost, around.total)}</small></>) },
    { key: 'count', label: 'Calls', numeric: true, text: (row) => row.count, show: (row) => number(row.count) },
    { key: 'per_call', label: 'Per call', hint: 'Cost of one of these calls, on average', numeric: true, text: (row) => (row.within || !row.count ? '' : Math.round(row.cost / row.count)), show: (row) => (row.within || !row.count ? '' : number(row.cost / row.count)) },
    { key: 'name', label: who, wide: true, text: named, title: titled },
  ];
  const inside: Column<CostFunction>[] = [
    { key: 'own', label: 'Self', numeric: true, text: (row) => row.own, show: (row) => <>{number(row.own)} <small>{percent(row.own, around.total)}</small></> },
    { key: 'name', label: 'Function', wide: true, text: (row) => row.name, title: titled },
  ];
  const open = (row: CostFunction) => go({ select: String(row.function) });
  return (
    <>
      <h3 title={around.file}>{named(around)} <span class="quiet">{base(around.object)}</span>{' '}
        <span class="buttons">
          {['source', 'assembly'].filter((view) => !around.members && shown.overview.views.includes(view)).map((view) => (
            <button type="button" key={view} onClick={() => go({ view, select: String(around.function) })}>{view === 'source' ? 'Source' : 'Assembly'}</button>
          ))}
          {!around.members && <button type="button" onClick={() => go({ view: 'flame', search: around.name, node: '' })}>Flame graph</button>}
        </span></h3>
      <p class="quiet">{percent(around.inclusive, around.total)} inclusive, {percent(around.own, around.total)} self{around.file && around.file !== '???' ? `, in ${around.file}` : ''}</p>
      {around.members > 0 && <p class="quiet">{number(around.members)} functions that call each other. Calls among them are recursion; the cycle’s cost is that of its functions and of the calls that lead out.</p>}
      {around.cycle > 0 && <p class="quiet">Part of <button type="button" class="inline" onClick={() => go({ select: String(around.first_cycle + around.cycle - 1) })}>{`<cycle ${around.cycle}>`}</button>: the inclusive cost leaves out calls within the cycle.</p>}
      <Graph around={around} shown={shown} />
      <div class="pair">
        <div><h4>Callers</h4><Table label="Callers" columns={columns('Caller')} source={listed(around.callers)} name="callers" onRow={open} /></div>
        <div><h4>Callees</h4><Table label="Callees" columns={columns('Callee')} source={listed(around.callees)} name="callees" onRow={open} /></div>
      </div>
      {!offline && !around.members && <Reach shown={shown} of={around} key={around.function} />}
      {around.members > 0 && <><h4>Functions of the cycle</h4><Table label="Functions of the cycle" columns={inside} source={listed(around.inside)} name="cycle" onRow={open} /></>}
    </>
  );
}

interface Reached extends CostFunction {
  distance: number; // calls between, at least
}

interface ReachAnswer {
  total: number;
  count: number;
  rows: Reached[];
}

// All callers and all callees, however far away.
function Reach({ shown, of }: { shown: Shown; of: CostFunction }) {
  const { state, go, metric } = shown;
  const [which, choose] = useState<'' | 'callers' | 'callees'>('');
  return (
    <div class="reach">
      <p class="buttons">
        {(['callers', 'callees'] as const).map((one) => (
          <button type="button" key={one} aria-pressed={which === one} onClick={() => choose(which === one ? '' : one)}>All {one}</button>
        ))}
      </p>
      {which && <ReachTable key={which} which={which} ask={(offset, count) => ask<ReachAnswer>('reach', { file: state.file, metric: metric.name, function: of.function, callers: which === 'callers', offset, count })}
        id={['reach', state.file, metric.name, of.function, which].join('|')} open={(row) => go({ select: String(row.function) })} />}
    </div>
  );
}

function ReachTable(props: { which: string; id: string; ask: (offset: number, count: number) => Promise<ReachAnswer>; open: (row: Reached) => void }) {
  const { head, problem, source } = usePages<Reached, ReachAnswer>(props.id, props.ask);
  if (problem) return <Problem text={problem} />;
  if (!head) return <Waiting />;
  const columns: Column<Reached>[] = [
    { key: 'distance', label: 'Distance', hint: 'Calls between them, at least', numeric: true, text: (row) => row.distance },
    { key: 'inclusive', label: 'Inclusive', hint: 'Of the function in all, not only in these calls', numeric: true, text: (row) => row.inclusive, show: (row) => <>{number(row.inclusive)} <small>{percent(row.inclusive, head.total)}</small></> },
    { key: 'own', label: 'Self', numeric: true, text: (row) => row.own, show: (row) => <>{number(row.own)} <small>{percent(row.own, head.total)}</small></> },
    { key: 'name', label: 'Function', wide: true, text: named, title: titled },
  ];
  return <Table label={`All ${props.which}`} columns={columns} source={source} name={`all-${props.which}`} onRow={props.open} />;
}

const BOX = 170, BOX_HEIGHT = 40, GAP = 64, LINE = 14;

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
        <defs>
          <marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto"><path d="M0,0L8,4L0,8z" class="arrow" /></marker>
        </defs>
        {around.edges.map(([from, to, count, cost, within], i) => {
          const [fx, fy] = places.get(from)!, [tx, ty] = places.get(to)!;
          const back = tx <= fx;
          const x1 = back ? fx + BOX / 2 : fx + BOX, y1 = back ? fy + BOX_HEIGHT : fy + BOX_HEIGHT / 2;
          const x2 = back ? tx + BOX / 2 : tx, y2 = back ? ty : ty + BOX_HEIGHT / 2;
          const middle = (x1 + x2) / 2;
          return (
            <g key={i}>
              <path class={within ? 'edge within' : 'edge'} marker-end="url(#arrow)" d={`M${x1},${y1}C${middle},${y1} ${middle},${y2} ${x2},${y2}`} stroke-width={1 + (5 * cost) / most}>
                <title>{`${around.nodes[from].name} → ${around.nodes[to].name}\n${number(count)} calls, ${within ? 'recursion' : exact(cost, metric.unit)}`}</title>
              </path>
              {!back && !within && <text class="edge-label" x={x2 - 10} y={y2 - 4} text-anchor="end">{percent(cost, around.total)}</text>}
            </g>
          );
        })}
        {around.nodes.map((node, i) => {
          const [x, y] = places.get(i)!;
          const name = node.name.length > 22 ? node.name.slice(0, 21) + '…' : node.name;
          return (
            <g key={i} class={node.level === 0 ? 'node middle' : 'node'} transform={`translate(${x},${y})`} role="button" tabindex={0}
              onClick={() => go({ select: String(node.function) })}
              onKeyDown={(event) => event.key === 'Enter' && go({ select: String(node.function) })}>
              <title>{`${named(node)}\n${node.object}\ninclusive ${exact(node.inclusive, metric.unit)}, self ${exact(node.own, metric.unit)}`}</title>
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
