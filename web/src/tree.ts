// Trees of calls as answers hold them: places on the screen, parts, tables.
import type { Tree, TreeNode } from './ask';

export const PARENT = 0, FUNCTION = 1, TOTAL = 2, SELF = 3, PLACE = 4, HIDDEN = 5;

export interface Box {
  index: number; // of the node
  from: number; // shares of the root's width
  to: number;
  depth: number;
}

// The same nodes with the largest of all siblings first. Their names (nameOf) stay.
export function heaviestFirst(tree: Tree): Tree {
  const children: number[][] = tree.nodes.map(() => []);
  tree.nodes.forEach((node, index) => node[PARENT] >= 0 && children[node[PARENT]].push(index));
  const nodes: TreeNode[] = [];
  const waiting: [number, number][] = tree.nodes.length ? [[0, -1]] : []; // index, its parent's new one
  while (waiting.length) {
    const [index, parent] = waiting.pop()!;
    const [, ...rest] = tree.nodes[index];
    nodes.push([parent, ...rest]);
    const own = nodes.length - 1;
    // Taken from the end: the largest last.
    for (const child of children[index].sort((a, b) => tree.nodes[a][TOTAL] - tree.nodes[b][TOTAL])) waiting.push([child, own]);
  }
  return { ...tree, nodes };
}

// What a search matches; null for a text that is no expression.
export function matcher(search: string, regex: boolean): ((name: string) => boolean) | null {
  const wanted = search.toLowerCase();
  if (!regex) return (name) => name.toLowerCase().includes(wanted);
  try {
    const expression = new RegExp(search, 'i');
    return (name) => expression.test(name);
  } catch {
    return null;
  }
}

// Nodes come in the order of a walk, parents first.
export function layout(tree: Tree): { rows: Box[][]; boxes: Box[] } {
  const boxes: Box[] = [];
  const next: number[] = []; // where the next child of each begins
  const rows: Box[][] = [];
  const whole = tree.nodes.length ? tree.nodes[0][TOTAL] || 1 : 1;
  tree.nodes.forEach((node, index) => {
    const parent = node[PARENT] < 0 ? null : boxes[node[PARENT]];
    const from = parent ? next[parent.index] : 0;
    const to = from + node[TOTAL] / whole;
    const box = { index, from, to, depth: parent ? parent.depth + 1 : 0 };
    if (parent) next[parent.index] = to;
    next[index] = from;
    boxes.push(box);
    (rows[box.depth] ||= []).push(box);
  });
  return { rows, boxes };
}

// The name of a node: its places from the root of the whole tree.
export function nameOf(tree: Tree, index: number): string {
  const places: number[] = [];
  for (let at = index; at > 0; at = tree.nodes[at][PARENT]) places.push(tree.nodes[at][PLACE]);
  const below = places.reverse().join('.');
  return tree.node && below ? `${tree.node}.${below}` : tree.node || below;
}

// The node of that name in a tree, 0 when it is not there.
export function indexOf(tree: Tree, name: string): number {
  const below = tree.node ? name.slice(tree.node.length + 1) : name;
  let at = 0;
  for (const place of below ? below.split('.').map(Number) : []) {
    at = tree.nodes.findIndex((one) => one[PARENT] === at && one[PLACE] === place);
    if (at < 0) return 0;
  }
  return at;
}

export function label(tree: Tree, index: number): string {
  const number = tree.nodes[index][FUNCTION];
  if (number >= 0) return tree.functions[number][0];
  return 'everything';
}

export function library(tree: Tree, index: number): string {
  const number = tree.nodes[index][FUNCTION];
  return number >= 0 ? tree.functions[number][1] : '';
}

// The part of an answer for the whole tree below a node; null if it is not in there.
export function part(tree: Tree, node: string): Tree | null {
  if (!node) return tree;
  let at = 0;
  const path: string[] = [];
  for (const place of node.split('.').map(Number)) {
    const found = tree.nodes.findIndex((one) => one[PARENT] === at && one[PLACE] === place);
    if (found < 0) return null;
    at = found;
    path.push(label(tree, at));
  }
  const numbers = new Map<number, number>();
  const nodes: TreeNode[] = [];
  for (let i = at; i < tree.nodes.length; i++) {
    const own = tree.nodes[i];
    if (i > at && !numbers.has(own[PARENT])) {
      if (own[PARENT] < at) break;
      continue;
    }
    numbers.set(i, nodes.length);
    nodes.push([i === at ? -1 : numbers.get(own[PARENT])!, own[1], own[2], own[3], own[4], own[5]]);
  }
  return { ...tree, node, path, nodes };
}

// What functions that match hold, nothing twice; of what is in the answer.
export function matched(tree: Tree, matches: (name: string) => boolean): number {
  const below = new Set<number>();
  let sum = 0;
  tree.nodes.forEach((node, index) => {
    if (below.has(node[PARENT])) {
      below.add(index);
    } else if (node[FUNCTION] >= 0 && matches(tree.functions[node[FUNCTION]][0])) {
      below.add(index);
      sum += node[TOTAL];
    }
  });
  return sum;
}

export function parentName(node: string): string {
  const dot = node.lastIndexOf('.');
  return dot < 0 ? '' : node.slice(0, dot);
}

// A colour by library, with some variation by name: hues of one library lie together. Lightness
// keeps text readable.
export function colour(name: string, library: string, dark: boolean): string {
  let hash = 7, fine = 3;
  for (let i = 0; i < library.length; i++) hash = (hash * 31 + library.charCodeAt(i)) >>> 0;
  for (let i = 0; i < name.length; i++) fine = (fine * 33 + name.charCodeAt(i)) >>> 0;
  fine = (fine ^ (fine >>> 15)) >>> 0;
  const base = hues[hash % hues.length];
  const hue = (base + (fine % 44) - 22 + 360) % 360;
  const light = dark ? 28 + ((fine >>> 8) % 9) : 75 + ((fine >>> 8) % 9);
  const strength = dark ? 38 + ((fine >>> 4) % 14) : 68 + ((fine >>> 4) % 22);
  return `hsl(${hue} ${strength}% ${light}%)`;
}

const hues = [28, 205, 265, 150, 340, 185, 50, 300, 230, 95];
