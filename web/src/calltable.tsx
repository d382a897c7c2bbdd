// Top-down and bottom-up: the tree of calls as a table that unfolds.
import { useEffect, useState } from 'preact/hooks';
import { ask, offline, type Tree } from './ask';
import { amount, described, exact, percent } from './format';
import { Check, CopyButton, csv, download, Problem, Waiting } from './parts';
import type { Shown } from './shown';
import { Stacks, stacksOf } from './flame';
import { FUNCTION, PARENT, PLACE, SELF, TOTAL } from './tree';

interface Child {
  place: number;
  function: string;
  library: string;
  total: number;
  self: number;
  children: number;
  all?: number[]; // inclusive, by every metric of the file
}

interface Children {
  unit: string;
  total: number;
  count: number;
  rows: Child[];
}

function fromTree(tree: Tree, node: string, most: number): Children {
  let at = 0;
  for (const place of node ? node.split('.').map(Number) : [])
    at = tree.nodes.findIndex((one) => one[PARENT] === at && one[PLACE] === place);
  const rows = tree.nodes
    .map((one, index) => ({ one, index }))
    .filter(({ one }) => one[PARENT] === at)
    .map(({ one, index }) => ({
      place: one[PLACE], function: tree.functions[one[FUNCTION]][0], library: tree.functions[one[FUNCTION]][1],
      total: one[TOTAL], self: one[SELF], children: tree.nodes.filter((other) => other[PARENT] === index).length,
    }))
    .sort((a, b) => b.total - a.total);
  return { unit: tree.unit, total: tree.total, count: rows.length, rows: rows.slice(0, most) };
}

// Above columns; the metrics' own texts are in the tooltips.
const headings: Record<string, string> = {
  peak: 'At peak', total: 'Allocated', count: 'Blocks', leaked: 'Not freed', temporary: 'Temporary',
  gb: 'At peak', tb: 'In all', tbk: 'Blocks', eb: 'At end', rb: 'Read', wb: 'Written',
};

interface Line extends Child {
  name: string;
  depth: number;
  parent: string;
  more?: number; // not a node: so many of its parent's children are not here yet
}

const METRICS_MOST = 6; // of a file whose nodes are shown by all of them
const FIRST_OPEN = 12; // levels that are open at first, along the heaviest path
const FIRST_ROWS = 40, MORE_ROWS = 400; // children of a node

export function CallTable({ shown }: { shown: Shown }) {
  const { state, go, metric, overview } = shown;
  const every = !offline && overview.metrics.length > 1 && overview.metrics.length <= METRICS_MOST && !Object.values(stacksOf(shown)).some(Boolean);
  const all = every && state.all;
  const [levels, setLevels] = useState<Map<string, Children>>(new Map());
  const [open, setOpen] = useState<Set<string>>(new Set());
  const [problem, setProblem] = useState<string | null>(null);
  const [focus, setFocus] = useState('');
  const key = [state.file, metric.name, state.invert, state.merge, state.from, state.to, state.focus, state.ignore, state.hide, all].join('|');
  const load = async (node: string, most = FIRST_ROWS): Promise<Children> => {
    const parameters = { file: state.file, metric: metric.name, invert: state.invert, merge: state.merge, ...shown.window, ...stacksOf(shown) };
    if (offline) return fromTree(await ask<Tree>('tree', parameters), node, most);
    return ask<Children>('children', { ...parameters, node, count: most, all });
  };
  useEffect(() => {
    let alive = true;
    const start = async () => {
      const levels = new Map<string, Children>(), open = new Set<string>(['']);
      let node = '';
      for (let depth = 0; depth < FIRST_OPEN; depth++) {
        const children = await load(node);
        if (!alive) return;
        levels.set(node, children);
        const heaviest = children.rows[0];
        if (!heaviest || !heaviest.children || heaviest.total < children.total / 4) break;
        node = node ? `${node}.${heaviest.place}` : String(heaviest.place);
        if (depth + 1 < FIRST_OPEN) open.add(node);
      }
      // What a link leads to is in sight, too.
      const places = state.open ? state.open.split('.') : [];
      for (let depth = 0; depth < places.length; depth++) {
        const above = places.slice(0, depth).join('.');
        if (!levels.has(above)) {
          const children = await load(above).catch(() => null);
          if (!alive) return;
          if (!children) break;
          levels.set(above, children);
        }
        open.add(above);
      }
      setLevels(levels);
      setOpen(open);
      setProblem(null);
      if (state.open) setFocus(state.open.replace(/\.$/, ''));
    };
    setLevels(new Map());
    start().catch((error: Error) => alive && setProblem(error.message));
    return () => {
      alive = false;
    };
  }, [key]);

  const toggle = async (name: string) => {
    go({ open: open.has(name) ? name : `${name}.` }, true);
    if (!levels.has(name)) {
      try {
        const children = await load(name);
        setLevels((old) => new Map(old).set(name, children));
      } catch (error) {
        setProblem((error as Error).message);
      }
    }
    setOpen((old) => {
      const next = new Set(old);
      if (!next.delete(name)) next.add(name);
      return next;
    });
  };
  const loadMore = async (node: string) => {
    try {
      const children = await load(node, (levels.get(node)?.rows.length ?? 0) + MORE_ROWS);
      setLevels((old) => new Map(old).set(node, children));
    } catch (error) {
      setProblem((error as Error).message);
    }
  };
  if (problem) return <section><Stacks shown={shown} /><Problem text={problem} /></section>;
  const root = levels.get('');
  if (!root) return <Waiting what="Building the tree of calls…" />;
  const lines: Line[] = [];
  const unfold = (node: string, depth: number) => {
    const level = levels.get(node);
    for (const child of level?.rows ?? []) {
      const name = node ? `${node}.${child.place}` : String(child.place);
      lines.push({ ...child, name, depth, parent: node });
      if (open.has(name)) unfold(name, depth + 1);
    }
    if (level && level.rows.length < level.count)
      lines.push({ name: `${node}+`, depth, parent: node, more: level.count - level.rows.length, place: 0, function: '', library: '', total: 0, self: 0, children: 0 });
  };
  unfold('', 0);
  const current = lines.some((line) => line.name === focus) ? focus : lines[0]?.name;
  const onKey = (event: KeyboardEvent) => {
    const index = lines.findIndex((line) => line.name === current);
    const line = lines[index];
    if (!line) return;
    let next: string | undefined;
    if (event.key === 'ArrowDown') next = lines[index + 1]?.name;
    else if (event.key === 'ArrowUp') next = lines[index - 1]?.name;
    else if (event.key === 'ArrowRight' && line.children && !open.has(line.name)) toggle(line.name);
    else if (event.key === 'ArrowLeft') open.has(line.name) ? toggle(line.name) : (next = line.parent || undefined);
    else if (event.key === 'Enter' && line.more) loadMore(line.parent);
    else if (event.key === 'Enter') go({ view: 'flame', node: line.name });
    else return;
    event.preventDefault();
    if (next) {
      setFocus(next);
      const row = (event.currentTarget as HTMLElement).querySelector<HTMLElement>(`[data-node="${next}"]`);
      row?.focus();
    }
  };
  const others = overview.metrics.filter((one) => one !== metric && one.name !== metric.name);
  const nameless = !shown.overview.views.includes('libraries');
  // On a phone names come first: numbers are what may be scrolled to.
  const phone = window.innerWidth < 640;
  const names = <th scope="col" key="names">{state.invert ? 'Function, and who called it' : 'Function, and what it called'}</th>;
  const text = () => lines.filter((line) => !line.more).map((line) =>
    `${percent(line.total, root.total).padStart(8)} ${String(line.total).padStart(14)}  ${'  '.repeat(line.depth)}${line.function}`).join('\n');
  return (
    <section>
      <div class="controls">
        <Check label="Bottom-up" hint="From the innermost function outwards" value={state.invert}
          set={(invert) => go({ invert, node: '', open: '' })} />
        <Check label="Merge recursion" value={state.merge} set={(merge) => go({ merge, node: '', open: '' })} />
        {every && <Check label="All metrics" hint="Every metric of the file in each row" value={state.all} set={(all) => go({ all })} />}
        <CopyButton text={text}>Copy as text</CopyButton>
        <button type="button" onClick={() => download('calls.csv', csv(['depth', 'total', 'self', 'function', 'library'],
          lines.filter((line) => !line.more).map((line) => [line.depth, line.total, line.self, line.function, line.library])))}>Download CSV</button>
      </div>
      <Stacks shown={shown} />
      <div class="table-scroll tall" tabIndex={lines.length ? -1 : 0}>
        <table role="treegrid" aria-label={state.invert ? 'Bottom-up' : 'Top-down'} onKeyDown={onKey}>
          <thead>
            <tr>
              {phone && names}
              <th scope="col" class="numeric" title={state.invert ? 'What the outermost row has by itself, as far as it comes this way' : undefined}>{state.invert ? 'This way' : 'Inclusive'}</th>
              {!state.invert && <th scope="col" class="numeric">Self</th>}
              {all && others.map((one) => <th scope="col" class="numeric" key={one.name} title={described(one.help)}>{headings[one.name] ?? one.name}</th>)}
              {!phone && names}
              {!nameless && <th scope="col">Library</th>}
            </tr>
          </thead>
          <tbody>
            {lines.map((line) => {
              if (line.more)
                return (
                  <tr key={line.name} data-node={line.name} aria-level={line.depth + 1} tabIndex={line.name === current ? 0 : -1}
                    class="clickable" onFocus={() => setFocus(line.name)} onClick={() => loadMore(line.parent)}>
                    <td colSpan={4 - Number(state.invert) - Number(nameless) + (all ? others.length : 0)} class="quiet"><span style={{ paddingLeft: `${Math.min(line.depth, 40) * 14}px` }}>{line.more.toLocaleString('en')} smaller ones…</span></td>
                  </tr>
                );
              const name = (
                <td class="wide" key="name" title={line.function}>
                  <span style={{ paddingLeft: `${Math.min(line.depth, 40) * (phone ? 9 : 14)}px` }}>
                    <span class="twist" aria-hidden="true">{line.children ? (open.has(line.name) ? '▾' : '▸') : ''}</span>
                    {line.function}
                  </span>
                </td>
              );
              return (
              <tr key={line.name} data-node={line.name} aria-level={line.depth + 1}
                aria-expanded={line.children ? open.has(line.name) : undefined}
                tabIndex={line.name === current ? 0 : -1} onFocus={() => setFocus(line.name)}
                class={line.children ? 'clickable' : ''} onClick={() => line.children && toggle(line.name)}>
                {phone && name}
                <td class="numeric" title={exact(line.total, root.unit)}>
                  {amount(line.total, root.unit)} <small>{percent(line.total, root.total)}</small>
                </td>
                {!state.invert && <td class="numeric" title={exact(line.self, root.unit)}>{line.self ? amount(line.self, root.unit) : ''}</td>}
                {all && others.map((one) => {
                  const value = line.all?.[overview.metrics.indexOf(one)];
                  if (value === undefined) return <td class="numeric" key={one.name} title="The tree is too large for this">–</td>;
                  return <td class="numeric" key={one.name} title={`${exact(value, one.unit)} (${percent(value, one.total)})`}>{amount(value, one.unit)}</td>;
                })}
                {!phone && name}
                {!nameless && <td title={line.library}>{line.library}</td>}
              </tr>
              );
            })}
          </tbody>
        </table>
        {lines.length === 0 && <p class="empty">Nothing to show.</p>}
      </div>
    </section>
  );
}
