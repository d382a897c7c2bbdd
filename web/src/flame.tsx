// Flame graph and icicle: a canvas that draws only the rows in sight.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { ask, offline, useAnswer, type Tree } from './ask';
import { amount, exact, percent } from './format';
import { Check, CopyButton, Problem, Search, useWidth, Waiting } from './parts';
import type { Shown } from './shown';
import { colour, indexOf, label, layout, library, matched, nameOf, part, parentName, PARENT, SELF, TOTAL, type Box } from './tree';

const ROW = 20;

export function useTree(shown: Shown, node: string) {
  const { state, metric, window: part } = shown;
  return useAnswer<Tree>('tree', {
    file: state.file, metric: metric.name, invert: state.invert, merge: state.merge,
    node: offline ? '' : node, width: 1500, ...part,
  });
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
  const { whole, tree, problem } = useZoomed(shown);
  if (!whole) return problem ? <Problem text={problem} /> : <Waiting what="Building the tree of calls…" />;
  return (
    <section aria-label="Flame graph">
      <Controls shown={shown} whole={whole} />
      {tree ? <Graph tree={tree} shown={shown} /> : problem ? <Problem text={problem} /> : <Waiting />}
      <p class="hint">
        Click or Enter zooms, Escape goes back, arrow keys move, / searches. Colours follow the library;
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

function Controls({ shown, whole }: { shown: Shown; whole: Tree }) {
  const { state, go, metric } = shown;
  const [share, setShare] = useState<{ key: string; matched: number } | null>(null);
  const key = [state.search, state.file, metric.name, state.invert, state.merge, state.from, state.to].join('|');
  useEffect(() => {
    if (!state.search) return;
    const wanted = state.search.toLowerCase();
    if (offline) {
      setShare({ key, matched: matched(whole, (name) => name.toLowerCase().includes(wanted)) });
      return;
    }
    let alive = true;
    ask<{ matched: number }>('match', {
      file: state.file, metric: metric.name, invert: state.invert, merge: state.merge,
      search: state.search, ...shown.window,
    }).then((found) => alive && setShare({ key, matched: found.matched }), () => alive && setShare(null));
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
          : ''}
      </output>
      <Check label="Icicle" hint="The root at the top" value={state.icicle} set={(icicle) => go({ icicle })} />
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

function Graph({ tree, shown }: { tree: Tree; shown: Shown }) {
  const { state, go, dark } = shown;
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
  const height = 2 + Math.min(Math.max(depth * ROW, 5 * ROW), Math.max(320, window.innerHeight - 330));
  const total = depth * ROW;

  const rowOf = (level: number) => (state.icicle ? level : depth - 1 - level);
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
    const search = state.search.toLowerCase();
    const ink = dark ? '#f2f2f2' : '#1a1a1a';
    const first = Math.max(0, Math.floor(top / ROW)), last = Math.min(depth - 1, Math.ceil((top + seen) / ROW));
    for (let row = first; row <= last; row++) {
      for (const box of places.rows[rowOf(row)]) {
        const x = box.from * width, wide = (box.to - box.from) * width;
        if (wide < 0.4) continue;
        const name = label(tree, box.index);
        const y = row * ROW - top;
        const hit = search && name.toLowerCase().includes(search);
        if (box.index === 0 && tree.nodes[0][1] < 0) pen.fillStyle = dark ? '#3a3f4a' : '#d5d9e0';
        else if (hit) pen.fillStyle = dark ? '#a3248f' : '#f39be6';
        else if (search) pen.fillStyle = dark ? '#33363d' : '#e4e6ea';
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
    if (scroller) scroller.scrollTop = state.icicle ? 0 : scroller.scrollHeight;
    draw();
  }, [tree, width, state.icicle]);
  useEffect(draw, [selected, state.search, dark, height]);

  const at = (event: MouseEvent): [number, number] => {
    const box = canvas.current!.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top + outer.current!.scrollTop];
  };
  const zoom = (index: number) => {
    if (index === 0) go({ node: parentName(state.node) });
    else go({ node: nameOf(tree, index) });
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
    const outward = state.icicle ? 'ArrowUp' : 'ArrowDown', inward = state.icicle ? 'ArrowDown' : 'ArrowUp';
    if (event.key === outward && tree.nodes[selected][PARENT] >= 0) move(tree.nodes[selected][PARENT]);
    else if (event.key === inward) {
      const children = (places.rows[box.depth + 1] || []).filter((one) => tree.nodes[one.index][PARENT] === selected);
      if (children.length)
        move(children.reduce((a, b) => (tree.nodes[b.index][TOTAL] > tree.nodes[a.index][TOTAL] ? b : a)).index);
    } else if (event.key === 'ArrowLeft' || event.key === 'ArrowRight') {
      const other = row[row.indexOf(box) + (event.key === 'ArrowLeft' ? -1 : 1)];
      if (other) move(other.index);
    } else if (event.key === 'Enter') zoom(selected);
    else if (event.key === 'Escape') go({ node: parentName(state.node) });
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
          setPointed(box ? { tree, index: box.index, x: event.clientX, y: event.clientY } : null);
        }}
        onMouseLeave={() => setPointed(null)}
        onClick={(event) => {
          const [x, y] = at(event);
          const box = found(x, y);
          if (box) zoom(box.index);
        }}>
        <div style={{ height: `${total}px` }}>
          <canvas ref={canvas} />
        </div>
      </div>
      {hover && <Tip hover={hover} inverted={state.invert} />}
      <Selected tree={tree} index={selected} inverted={state.invert} />
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
      {!inverted && <span>itself {exact(node[SELF], tree.unit)}</span>}
    </div>
  );
}

function Selected({ tree, index, inverted }: { tree: Tree; index: number; inverted: boolean }) {
  const node = tree.nodes[index];
  return (
    <p class="selected" role="status" data-testid="selected">
      <span class="name" title={label(tree, index)}>{label(tree, index)}</span>{' '}
      <span class="quiet">{library(tree, index)}</span>{' '}
      {percent(node[TOTAL], tree.total)}, {exact(node[TOTAL], tree.unit)}{!inverted && `, itself ${exact(node[SELF], tree.unit)}`}{' '}
      <CopyButton text={() => [...tree.path.slice(0, -1), ...chain(tree, index)].join('\n')}>Copy stack</CopyButton>{' '}
      <CopyButton text={() => asText(tree)}>Copy as text</CopyButton>
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
