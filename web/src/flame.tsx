// Flame graph and icicle: a canvas that draws only the rows in sight.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ask, offline, useAnswer, type Tree } from './ask';
import { amount, exact, percent } from './format';
import { Check, CopyButton, Problem, Search, useWidth, Waiting } from './parts';
import type { Shown } from './shown';
import { colour, heaviestFirst, indexOf, label, layout, library, matched, matcher, nameOf, part, parentName, PARENT, SELF, TOTAL, type Box } from './tree';

const ROW = 20;

export function useTree(shown: Shown, node: string) {
  const { state, metric, window: part } = shown;
  return useAnswer<Tree>('tree', {
    file: state.file, metric: metric.name, invert: state.invert, merge: state.merge,
    node: offline ? '' : node, width: 1500, ...part, ...stacksOf(shown),
  });
}

// Which stacks are asked for. A page in a file has all of them, and no others.
export function stacksOf({ state }: Shown): { focus?: string; ignore?: string; hide?: string } {
  if (offline) return {};
  return { focus: state.focus || undefined, ignore: state.ignore || undefined, hide: state.hide || undefined };
}

// The whole tree, and the part that the address is zoomed to: what the whole holds of it until the finer
// answer is here. The same part is the same object, so that views can tell whether it has changed.
export function useZoomed(shown: Shown): { whole: Tree | null; tree: Tree | null; problem: string | null } {
  const { node } = shown.state;
  const whole = useTree(shown, '');
  const fine = useTree(shown, node);
  const coarse = useMemo(() => whole.value && part(whole.value, node), [whole.value, node]);
  const tree = fine.value && fine.value.node === node ? fine.value : coarse;
  const absent = offline ? 'this is not in the file; quern view shows it' : null;
  return { whole: whole.value, tree, problem: whole.problem || (tree || !whole.value ? null : fine.problem || absent) };
}

// A node of a tree that is or was shown. Its number means nothing in any other tree.
export interface Chosen {
  tree: Tree;
  index: number;
}

export function Flame({ shown }: { shown: Shown }) {
  const { state, go } = shown;
  const { whole, tree: found, problem } = useZoomed(shown);
  const tree = useMemo(() => found && state.heavy ? heaviestFirst(found) : found, [found, state.heavy]);
  if (state.around && !offline) return <Sandwich shown={shown} name={state.around} />;
  if (!whole && problem) return <section><Stacks shown={shown} /><Problem text={problem} /></section>;
  if (!whole) return problem ? <Problem text={problem} /> : <Waiting what="Building the tree of calls…" />;
  return (
    <section aria-label="Flame graph">
      <Controls shown={shown} whole={whole} />
      <Stacks shown={shown} />
      {tree ? <Graph tree={tree} shown={shown} icicle={state.icicle} inverted={state.invert}
        open={(index) => go({ node: index ? nameOf(tree, index) : parentName(state.node) })} back={() => go({ node: parentName(state.node) })} /> : problem ? <Problem text={problem} /> : <Waiting />}
      <p class="hint">
        Click or Enter zooms, dragging zooms to what lies between, Escape goes back, arrow keys move, / searches,
        n and N go to the next and previous match. Colours follow the library;
        what is narrower than a pixel is left out
        {offline ? '.' : ' until you zoom in.'} {exact(whole.tree_nodes, 'nodes')} in all.
        {whole.shortened > 0 &&
          ` ${amount(whole.shortened, whole.unit)} are shown further out than they belong: the tree has too many nodes.`}
      </p>
      {state.node && (tree || problem) && (
        <nav class="crumbs" aria-label="Zoomed to">
          <button type="button" onClick={() => go({ node: '' })}>everything</button>
          {tree?.path.map((name, i) => (
            <button type="button" key={i} title={name}
              onClick={() => go({ node: state.node.split('.').slice(0, i + 1).join('.') })}>
              {name}
            </button>
          ))}
        </nav>
      )}
    </section>
  );
}

// Which stacks count, and which frames of them are shown: pprof's focus, ignore and hide.
export function Stacks({ shown }: { shown: Shown }) {
  const { state, go } = shown;
  const set = !!(state.focus || state.ignore || state.hide);
  if (offline) return null;
  const field = (name: 'focus' | 'ignore' | 'hide', label: string, hint: string) => (
    <label class="field" title={hint}>
      {label} <Search value={state[name]} label={`${label} (regular expression)`} set={(text) => go({ [name]: text, node: '' }, true)} />
    </label>
  );
  return (
    <details class="stacks" open={set || undefined} data-testid="stacks">
      <summary>Stacks{set ? `: ${[state.focus && `focus ${state.focus}`, state.ignore && `ignore ${state.ignore}`, state.hide && `hide ${state.hide}`].filter(Boolean).join(', ')}` : ': all'}</summary>
      <div class="controls">
        {field('focus', 'Focus', 'Only stacks with a function that matches')}
        {field('ignore', 'Ignore', 'No stacks with a function that matches')}
        {field('hide', 'Hide', 'Frames that match are left out; what they cost stays with their callers')}
        {set && <button type="button" onClick={() => go({ focus: '', ignore: '', hide: '', node: '' })}>Show all</button>}
      </div>
    </details>
  );
}

// One function in the middle: all that leads to it above, all that it calls below.
function Sandwich({ shown, name }: { shown: Shown; name: string }) {
  const { state, go, metric } = shown;
  const shared = { file: state.file, metric: metric.name, merge: state.merge, width: 1500, ...shown.window, ...stacksOf(shown) };
  const callers = useAnswer<Tree>('tree', { ...shared, above: name, invert: true });
  const callees = useAnswer<Tree>('tree', { ...shared, below: name });
  // The root stands for nothing here.
  const above = useMemo(() => callers.value && heaviestFirst(part(callers.value, '0') || callers.value), [callers.value]);
  const below = useMemo(() => callees.value && heaviestFirst(part(callees.value, '0') || callees.value), [callees.value]);
  const open = (tree: Tree) => (index: number) => go(index ? { around: label(tree, index) } : { around: '' });
  const problem = callers.problem || callees.problem;
  return (
    <section aria-label="Callers and callees" data-testid="sandwich">
      <div class="controls">
        <button type="button" onClick={() => go({ around: '' })}>Back to the flame graph</button>
        <Check label="Merge recursion" hint="A function stands once in each path" value={state.merge} set={(merge) => go({ merge })} />
      </div>
      <h2 class="of-function" title={name}>{name}</h2>
      {problem && <Problem text={problem} />}
      {!problem && (!above || !below) && <Waiting />}
      {above && below && !problem && (
        <>
          <h3>Callers</h3>
          <Graph tree={above} shown={shown} icicle={false} inverted open={open(above)} back={() => go({ around: '' })} low />
          <h3>Callees</h3>
          <Graph tree={below} shown={shown} icicle inverted={false} open={open(below)} back={() => go({ around: '' })} low />
        </>
      )}
      <p class="hint">
        Widths are shares of the stacks with {name}, recursion counted once. A click or Enter on another function shows that one.
        {shown.overview.kind === 'callgrind' && ' These stacks are computed from the calls of the profile; the view “Callers and callees” has the exact sums.'}
      </p>
    </section>
  );
}

function Controls({ shown, whole }: { shown: Shown; whole: Tree }) {
  const { state, go, metric } = shown;
  const [share, setShare] = useState<{ key: string; matched: number } | null>(null);
  const [wrong, setWrong] = useState('');
  const key = [state.search, state.regex, state.file, metric.name, state.invert, state.merge, state.from, state.to, state.focus, state.ignore, state.hide].join('|');
  useEffect(() => {
    setWrong('');
    if (!state.search) return;
    const matches = matcher(state.search, state.regex);
    if (!matches) {
      setWrong('This is not a regular expression.');
      return;
    }
    if (offline) {
      setShare({ key, matched: matched(whole, matches) });
      return;
    }
    let alive = true;
    ask<{ matched: number }>('match', {
      file: state.file, metric: metric.name, invert: state.invert, merge: state.merge,
      search: state.search, regex: state.regex, ...shown.window, ...stacksOf(shown),
    }).then((found) => alive && setShare({ key, matched: found.matched }), (error: Error) => {
      if (!alive) return;
      setShare(null);
      setWrong(error.message);
    });
    return () => {
      alive = false;
    };
  }, [key]);
  return (
    <div class="controls">
      <Search id="search" value={state.search} label="Search functions"
        set={(search) => go({ search }, true)} />
      <output class="matches" data-testid="match">
        {state.search && share && share.key === key
          ? `${percent(share.matched, whole.total)} matches (${amount(share.matched, whole.unit)})`
          : state.search && wrong}
      </output>
      <Check label="Regex" hint="The search is a regular expression" value={state.regex} set={(regex) => go({ regex }, true)} />
      <Check label="Icicle" hint="The root at the top" value={state.icicle} set={(icicle) => go({ icicle })} />
      <Check label="Left heavy" hint="The largest of all callees first, not in the order of names" value={state.heavy}
        set={(heavy) => go({ heavy })} />
      <Check label="Invert" hint="From the innermost function outwards" value={state.invert}
        set={(invert) => go({ invert, node: '' })} />
      <Check label="Merge recursion" hint="A function stands once in each path" value={state.merge}
        set={(merge) => go({ merge, node: '' })} />
    </div>
  );
}

interface Hover extends Chosen {
  x: number; // of the pointer
  y: number;
}

interface GraphProps {
  tree: Tree;
  shown: Shown;
  icicle: boolean;
  inverted: boolean;
  low?: boolean; // one of two
  open: (index: number) => void; // what a click or Enter on a node does
  back: () => void;
}

const DRAGGED = 6; // pixels: less is a click

function Graph({ tree, shown, icicle, inverted, low, open, back }: GraphProps) {
  const { state, go, dark } = shown;
  const dragged = useRef<number | null>(null); // where the pointer went down
  const [range, setRange] = useState<[number, number] | null>(null);
  const [outer, width] = useWidth<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  // After a zoom another box lies under the pointer: which one is known when it moves.
  const [pointed, setPointed] = useState<Hover | null>(null);
  const hover = pointed?.tree === tree ? pointed : null;
  // What was chosen stays so when the same part of the tree comes with more detail.
  const [chosen, choose] = useState<Chosen>({ tree, index: 0 });
  const selected = useMemo(
    () => (chosen.tree === tree ? chosen.index
      : chosen.tree.node === tree.node ? indexOf(tree, nameOf(chosen.tree, chosen.index)) : 0),
    [chosen, tree],
  );
  const select = (index: number) => choose({ tree, index });
  const places = useMemo(() => layout(tree), [tree]);
  const depth = places.rows.length;
  const height = 2 + Math.min(Math.max(depth * ROW, (low ? 1 : 5) * ROW), Math.max(low ? 200 : 320, low ? window.innerHeight / 2 - 190 : window.innerHeight - 330));
  const total = depth * ROW;

  const rowOf = (level: number) => (icicle ? level : depth - 1 - level);
  const found = (x: number, y: number): Box | null => {
    const level = rowOf(Math.floor(y / ROW));
    const share = x / width;
    const row = places.rows[level];
    if (!row) return null;
    let low = 0, high = row.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      if (row[middle].to <= share) low = middle + 1;
      else if (row[middle].from > share) high = middle - 1;
      else return row[middle];
    }
    return null;
  };

  const draw = () => {
    const element = canvas.current, scroller = outer.current;
    if (!element || !scroller || !width) return;
    const ratio = window.devicePixelRatio || 1;
    const seen = scroller.clientHeight;
    if (element.width !== Math.round(width * ratio) || element.height !== Math.round(seen * ratio)) {
      element.width = Math.round(width * ratio);
      element.height = Math.round(seen * ratio);
      element.style.width = `${width}px`;
      element.style.height = `${seen}px`;
    }
    const pen = element.getContext('2d')!;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, seen);
    pen.font = '12px system-ui, sans-serif';
    pen.textBaseline = 'middle';
    const top = scroller.scrollTop;
    const matches = state.search ? matcher(state.search, state.regex) : null;
    const ink = dark ? '#f2f2f2' : '#1a1a1a';
    const first = Math.max(0, Math.floor(top / ROW)), last = Math.min(depth - 1, Math.ceil((top + seen) / ROW));
    for (let row = first; row <= last; row++) {
      for (const box of places.rows[rowOf(row)]) {
        const x = box.from * width, wide = (box.to - box.from) * width;
        if (wide < 0.4) continue;
        const name = label(tree, box.index);
        const y = row * ROW - top;
        const hit = matches?.(name);
        if (box.index === 0 && tree.nodes[0][1] < 0) pen.fillStyle = dark ? '#3a3f4a' : '#d5d9e0';
        else if (hit) pen.fillStyle = dark ? '#a3248f' : '#f39be6';
        else if (matches) pen.fillStyle = dark ? '#33363d' : '#e4e6ea';
        else pen.fillStyle = colour(name, library(tree, box.index), dark);
        pen.fillRect(x, y, Math.max(wide - 0.6, 0.4), ROW - 1);
        if (box.index === selected) {
          pen.strokeStyle = ink;
          pen.lineWidth = 2;
          pen.strokeRect(x + 1, y + 1, Math.max(wide - 2.6, 1), ROW - 3);
        }
        if (wide > 28) {
          pen.fillStyle = ink;
          pen.fillText(fitted(pen, name, wide - 8), x + 4, y + ROW / 2);
        }
      }
    }
  };

  useEffect(() => {
    const scroller = outer.current;
    if (scroller) scroller.scrollTop = icicle ? 0 : scroller.scrollHeight;
    draw();
  }, [tree, width, icicle]);
  useEffect(draw, [selected, state.search, state.regex, dark, height]);
  // In the order in which they are read: row by row from the root.
  const hits = useMemo(() => {
    const matches = state.search ? matcher(state.search, state.regex) : null;
    return matches ? places.rows.flatMap((row) => row.filter((box) => box.depth > 0 && matches(label(tree, box.index))).map((box) => box.index)) : [];
  }, [places, state.search, state.regex]);
  const nextHit = (step: number) => {
    if (!hits.length) return;
    const here = hits.indexOf(selected);
    move(hits[here < 0 ? (step > 0 ? 0 : hits.length - 1) : (here + step + hits.length) % hits.length]);
  };

  const at = (event: MouseEvent): [number, number] => {
    const box = canvas.current!.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top + outer.current!.scrollTop];
  };
  // The smallest box that holds both.
  const common = (a: number, b: number): number => {
    while (a !== b) {
      if (places.boxes[a].depth >= places.boxes[b].depth) a = tree.nodes[a][PARENT];
      else b = tree.nodes[b][PARENT];
    }
    return a;
  };
  const move = (index: number) => {
    select(index);
    const scroller = outer.current!;
    const y = rowOf(places.boxes[index].depth) * ROW;
    if (y < scroller.scrollTop) scroller.scrollTop = y;
    if (y + ROW > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = y + ROW - scroller.clientHeight;
  };
  const onKey = (event: KeyboardEvent) => {
    const box = places.boxes[selected];
    const row = places.rows[box.depth];
    const outward = icicle ? 'ArrowUp' : 'ArrowDown', inward = icicle ? 'ArrowDown' : 'ArrowUp';
    if (event.key === outward && tree.nodes[selected][PARENT] >= 0) move(tree.nodes[selected][PARENT]);
    else if (event.key === inward) {
      const children = (places.rows[box.depth + 1] || []).filter((one) => tree.nodes[one.index][PARENT] === selected);
      if (children.length)
        move(children.reduce((a, b) => (tree.nodes[b.index][TOTAL] > tree.nodes[a.index][TOTAL] ? b : a)).index);
    } else if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') {
      const other = row[row.indexOf(box) + (event.key === 'ArrowLeft' ? -1 : 1)];
      if (other) move(other.index);
    } else if (event.key === 'Enter') open(selected);
    else if (event.key === 'Escape') back();
    else if (event.key === 'n' || event.key === 'N') nextHit(event.key === 'n' ? 1 : -1);
    else return;
    event.preventDefault();
  };
  return (
    <>
      <div class="flame" ref={outer} style={{ height: `${height}px` }} onScroll={draw} tabIndex={0}
        role="application" aria-label="Tree of calls; arrow keys move, Enter zooms in, Escape zooms out"
        onKeyDown={onKey}
        onMouseMove={(event) => {
          const [x, y] = at(event);
          const box = found(x, y);
          const from = dragged.current;
          const drags = from !== null && event.buttons === 1 && Math.abs(x - from) > DRAGGED;
          setRange(drags ? [Math.min(from!, x), Math.max(from!, x)] : null);
          setPointed(box && !drags ? { tree, index: box.index, x: event.clientX, y: event.clientY } : null);
        }}
        onMouseDown={(event) => {
          dragged.current = event.button === 0 ? at(event)[0] : null;
        }}
        onMouseLeave={() => {
          setPointed(null);
          setRange(null);
          dragged.current = null;
        }}
        onClick={(event) => {
          const [x, y] = at(event);
          const box = found(x, y), from = dragged.current;
          dragged.current = null;
          setRange(null);
          if (from !== null && Math.abs(x - from) > DRAGGED) {
            const other = found(from, y);
            if (box && other) open(common(box.index, other.index));
          } else if (box) open(box.index);
        }}>
        <div style={{ height: `${total}px` }}>
          <canvas ref={canvas} />
          {range && <div class="drag-range" style={{ left: `${range[0]}px`, width: `${range[1] - range[0]}px` }} />}
        </div>
      </div>
      {hover && <Tip hover={hover} inverted={inverted} />}
      {hits.length > 0 && (
        <p class="hits" data-testid="hits">
          <button type="button" onClick={() => nextHit(-1)}>Previous match</button>{' '}
          <button type="button" onClick={() => nextHit(1)}>Next match</button>{' '}
          <span class="quiet" role="status">{hits.includes(selected) ? `${hits.indexOf(selected) + 1} of ${hits.length}` : `${hits.length} boxes match`}</span>
        </p>
      )}
      <Selected tree={tree} index={selected} inverted={inverted}
        around={!offline && tree.nodes[selected][1] >= 0 && label(tree, selected) !== state.around ? () => go({ around: label(tree, selected) }) : undefined} />
    </>
  );
}

const widths = new Map<string, number>();

// As much of the name as fits.
function fitted(pen: CanvasRenderingContext2D, name: string, room: number): string {
  let wide = widths.get(name);
  if (wide === undefined) {
    if (widths.size > 20000) widths.clear();
    widths.set(name, (wide = pen.measureText(name).width));
  }
  if (wide <= room) return name;
  const letters = Math.floor((room / wide) * name.length) - 1;
  return letters < 2 ? '' : name.slice(0, letters) + '…';
}

// Inverted, a box is what its innermost function has itself: only that is told.
function Tip({ hover, inverted }: { hover: Hover; inverted: boolean }) {
  const { tree, index } = hover;
  const node = tree.nodes[index];
  const left = Math.max(8, Math.min(hover.x + 14, window.innerWidth - 440));
  const below = hover.y + 140 < window.innerHeight;
  return (
    <div class="tip" role="tooltip"
      style={{ left: `${left}px`, top: below ? `${hover.y + 16}px` : 'auto', bottom: below ? 'auto' : `${window.innerHeight - hover.y + 10}px` }}>
      <b>{label(tree, index)}</b>
      {library(tree, index) && <span class="quiet">{library(tree, index)}</span>}
      <span>{percent(node[TOTAL], tree.total)} · {amount(node[TOTAL], tree.unit)} · {exact(node[TOTAL], tree.unit)}</span>
      {!inverted && <span>self {exact(node[SELF], tree.unit)}</span>}
    </div>
  );
}

function Selected({ tree, index, inverted, around }: { tree: Tree; index: number; inverted: boolean; around?: () => void }) {
  const node = tree.nodes[index];
  return (
    <p class="selected" role="status" data-testid="selected">
      <span class="name" title={label(tree, index)}>{label(tree, index)}</span>{' '}
      <span class="quiet">{library(tree, index)}</span>{' '}
      {percent(node[TOTAL], tree.total)}, {exact(node[TOTAL], tree.unit)}{!inverted && `, self ${exact(node[SELF], tree.unit)}`}{' '}
      <CopyButton text={() => [...tree.path.slice(0, -1), ...chain(tree, index)].join('\n')}>Copy stack</CopyButton>{' '}
      <CopyButton text={() => asText(tree)}>Copy as text</CopyButton>{' '}
      {around && <button type="button" onClick={around} title="All paths to it and all paths from it, in one picture">Callers and callees</button>}
    </p>
  );
}

// What is in sight, indented by depth.
function asText(tree: Tree): string {
  const depths: number[] = [];
  return tree.nodes.map((node, index) => {
    depths[index] = node[PARENT] < 0 ? 0 : depths[node[PARENT]] + 1;
    return `${percent(node[TOTAL], tree.total).padStart(8)} ${String(node[TOTAL]).padStart(14)}  ${'  '.repeat(depths[index])}${label(tree, index)}`;
  }).join('\n');
}

// The names from the root of the answer to the node.
function chain(tree: Tree, index: number): string[] {
  const names: string[] = [];
  for (let at = index; at >= 0; at = tree.nodes[at][PARENT]) if (tree.nodes[at][1] >= 0) names.push(label(tree, at));
  return names.reverse();
}
