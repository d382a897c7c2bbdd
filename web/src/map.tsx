// The call map: nested boxes whose areas are the costs.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Tree } from './ask';
import { Stacks, useZoomed, type Chosen } from './flame';
import { exact, percent } from './format';
import { Problem, useWidth, Waiting } from './parts';
import type { Shown } from './shown';
import { colour, label, library, nameOf, parentName, PARENT, SELF, TOTAL } from './tree';

interface Rect {
  index: number;
  x: number;
  y: number;
  w: number;
  h: number;
}

const HEAD = 15, EDGE = 2, LEAST = 7;

// Squarified: rows of children, each as close to squares as it gets.
function place(tree: Tree, children: number[][], index: number, x: number, y: number, w: number, h: number, out: Rect[]): void {
  out.push({ index, x, y, w, h });
  const inner = { x: x + EDGE, y: y + HEAD, w: w - 2 * EDGE, h: h - HEAD - EDGE };
  if (inner.w < LEAST || inner.h < LEAST) return;
  const scale = (inner.w * inner.h) / (tree.nodes[index][TOTAL] || 1);
  let rest = [...children[index]].sort((a, b) => tree.nodes[b][TOTAL] - tree.nodes[a][TOTAL]);
  while (rest.length && inner.w > LEAST / 2 && inner.h > LEAST / 2) {
    const side = Math.min(inner.w, inner.h);
    let row: number[] = [], sum = 0, best = Infinity;
    for (const one of rest) {
      const area = tree.nodes[one][TOTAL] * scale;
      const least = Math.min(area, ...row.map((other) => tree.nodes[other][TOTAL] * scale));
      const most = Math.max(area, ...row.map((other) => tree.nodes[other][TOTAL] * scale));
      const total = sum + area;
      const ratio = Math.max((side * side * most) / (total * total), (total * total) / (side * side * (least || 1e-9)));
      if (row.length && ratio > best) break;
      row.push(one);
      sum = total;
      best = ratio;
      if (row.length > 400) break;
    }
    const thick = sum / side;
    let at = 0;
    for (const one of row) {
      const long = (tree.nodes[one][TOTAL] * scale) / (thick || 1);
      if (inner.w >= inner.h) place(tree, children, one, inner.x, inner.y + at, thick, long, out);
      else place(tree, children, one, inner.x + at, inner.y, long, thick, out);
      at += long;
    }
    if (inner.w >= inner.h) {
      inner.x += thick;
      inner.w -= thick;
    } else {
      inner.y += thick;
      inner.h -= thick;
    }
    rest = rest.slice(row.length);
  }
}

export function CallMap({ shown }: { shown: Shown }) {
  const { tree, problem } = useZoomed(shown);
  if (tree) return <><Stacks shown={shown} /><Boxes tree={tree} shown={shown} /></>;
  if (!problem) return <Waiting />;
  return (
    <section>
      <Stacks shown={shown} />
      <Problem text={problem} />
      {shown.state.node && <nav class="crumbs"><button type="button" onClick={() => shown.go({ node: '' })}>everything</button></nav>}
    </section>
  );
}

function Boxes({ tree, shown }: { tree: Tree; shown: Shown }) {
  const { state, go, dark } = shown;
  const [outer, width] = useWidth<HTMLDivElement>();
  const canvas = useRef<HTMLCanvasElement>(null);
  // In another tree it is the root again.
  const [chosen, choose] = useState<Chosen>({ tree, index: 0 });
  const at = chosen.tree === tree ? chosen.index : 0;
  const setAt = (index: number) => choose({ tree, index });
  const height = Math.max(360, window.innerHeight - 260);
  const rects = useMemo(() => {
    const children: number[][] = tree.nodes.map(() => []);
    tree.nodes.forEach((node, i) => node[PARENT] >= 0 && children[node[PARENT]].push(i));
    const out: Rect[] = [];
    if (width) place(tree, children, 0, 0, 0, width, height, out);
    return out;
  }, [tree, width, height]);
  useEffect(() => {
    const element = canvas.current;
    if (!element || !width) return;
    const ratio = window.devicePixelRatio || 1;
    element.width = width * ratio;
    element.height = height * ratio;
    element.style.width = `${width}px`;
    element.style.height = `${height}px`;
    const pen = element.getContext('2d')!;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.font = '11.5px system-ui, sans-serif';
    pen.textBaseline = 'middle';
    for (const box of rects) {
      if (box.w < 1.5 || box.h < 1.5) continue;
      pen.fillStyle = box.index === 0 && tree.nodes[0][1] < 0 ? (dark ? '#2a2e36' : '#eceef1') : colour(label(tree, box.index), library(tree, box.index), dark);
      pen.fillRect(box.x, box.y, box.w - 0.7, box.h - 0.7);
      pen.strokeStyle = box.index === at ? (dark ? '#fff' : '#000') : dark ? '#0008' : '#0003';
      pen.lineWidth = box.index === at ? 2 : 1;
      pen.strokeRect(box.x + 0.5, box.y + 0.5, box.w - 1.5, box.h - 1.5);
      if (box.w > 40 && box.h > HEAD) {
        const letters = Math.floor((box.w - 8) / 6.2), name = label(tree, box.index);
        pen.fillStyle = dark ? '#f2f2f2' : '#1a1a1a';
        pen.fillText(name.length > letters ? name.slice(0, letters - 1) + '…' : name, box.x + 4, box.y + HEAD / 2 + 1);
      }
    }
  }, [rects, dark, at]);
  // The last one that holds the point is the innermost.
  const found = (event: MouseEvent) => {
    const place = canvas.current!.getBoundingClientRect();
    const x = event.clientX - place.left, y = event.clientY - place.top;
    let best = 0;
    for (const box of rects) if (x >= box.x && x < box.x + box.w && y >= box.y && y < box.y + box.h) best = box.index;
    return best;
  };
  // The largest first, as they are placed; only what is large enough to be seen.
  const inside = (index: number) => rects.filter((box) => tree.nodes[box.index][PARENT] === index).map((box) => box.index);
  const onKey = (event: KeyboardEvent) => {
    const above = tree.nodes[at][PARENT];
    const beside = above < 0 ? [] : inside(above);
    let next: number | undefined;
    if (event.key === 'ArrowDown') next = inside(at)[0];
    else if (event.key === 'ArrowUp') next = above < 0 ? undefined : above;
    else if (event.key === 'ArrowRight') next = beside[beside.indexOf(at) + 1];
    else if (event.key === 'ArrowLeft') next = beside[beside.indexOf(at) - 1];
    else if (event.key === 'Enter' && at) go({ node: nameOf(tree, at) });
    else if (event.key === 'Escape') go({ node: parentName(state.node) });
    else return;
    event.preventDefault();
    if (next !== undefined) setAt(next);
  };
  const node = tree.nodes[at];
  return (
    <section>
      <div class="map" ref={outer} tabIndex={0} role="application" aria-label="Call map; arrow keys move, Enter zooms in, Escape zooms out"
        onMouseMove={(event) => setAt(found(event))}
        onClick={(event) => { const box = found(event); go({ node: box ? nameOf(tree, box) : parentName(state.node) }); }}
        onKeyDown={onKey}>
        <canvas ref={canvas} />
      </div>
      <p class="selected" role="status" data-testid="selected">
        <span class="name" title={label(tree, at)}>{label(tree, at)}</span> <span class="quiet">{library(tree, at)}</span>{' '}
        {percent(node[TOTAL], tree.total)}, {exact(node[TOTAL], tree.unit)}{!state.invert && `, self ${exact(node[SELF], tree.unit)}`}
      </p>
      <p class="hint">Areas are the metric; {state.invert ? 'who calls a function' : 'what a function calls'} lies inside it. A click or Enter
        zooms, Escape or a click on the frame goes back, arrow keys move: down to the largest inside, up, and to what is beside.</p>
    </section>
  );
}
