// Where answers come from: the server, or the file this page is in.
import { useEffect, useState } from 'preact/hooks';

export type Parameters = Record<string, string | number | boolean | undefined>;

const holder = document.getElementById('answers');
const kept: Record<string, unknown> | null = holder ? JSON.parse(holder.textContent || '{}') : null;

// The page is a file by itself: what it holds is all there is.
export const offline = kept !== null;

function words(parameters: Parameters): string {
  const list = new URLSearchParams();
  for (const name of Object.keys(parameters).sort()) {
    const value = parameters[name];
    if (value === undefined || value === '') continue;
    list.set(name, value === true ? '1' : value === false ? '0' : String(value));
  }
  return list.toString();
}

// Only these tell answers in a file apart.
const keys: Record<string, string[]> = {
  tree: ['invert', 'merge', 'metric'],
  functions: ['metric'],
  libraries: ['metric'],
  calls: ['function', 'metric'],
  costs: ['metric'],
};

function fromFile(question: string, parameters: Parameters): unknown {
  const names = keys[question];
  const key = names
    ? question + '?' + names.map((name) => {
        const value = parameters[name];
        return `${name}=${value === true ? '1' : value === false || value === undefined ? '0' : value}`;
      }).join('&')
    : question;
  if (question === 'files') {
    const overview = kept!.overview as { name: string } | undefined;
    return { files: [{ name: overview?.name ?? '', ready: true, problem: null, read: 0, size: 0 }] };
  }
  if (!(key in kept!)) throw new Error('this is not in the file; quern view shows it');
  return kept![key];
}

export async function ask<T>(question: string, parameters: Parameters = {}): Promise<T> {
  if (offline) return fromFile(question, parameters) as T;
  const answer = await fetch(`ask/${question}?${words(parameters)}`);
  const type = answer.headers.get('Content-Type') || '';
  if (!type.startsWith('application/json')) throw new Error((await answer.text()).trim());
  const value = await answer.json();
  if (!answer.ok) throw new Error(value.problem || `status ${answer.status}`);
  return value as T;
}

export interface Answer<T> {
  value: T | null;
  problem: string | null;
  waiting: boolean;
}

const cache = new Map<string, unknown>();
const CACHED = 60;

function remember(key: string, value: unknown): void {
  cache.delete(key);
  cache.set(key, value);
  if (cache.size > CACHED) cache.delete(cache.keys().next().value as string);
}

// Asks whenever the question changes; null asks nothing.
export function useAnswer<T>(question: string | null, parameters: Parameters = {}): Answer<T> {
  const key = question === null ? '' : question + '?' + words(parameters);
  const [state, set] = useState<{ key: string; value: T | null; problem: string | null }>({
    key: '', value: null, problem: null,
  });
  useEffect(() => {
    if (question === null || cache.has(key)) return;
    let wanted = true;
    ask<T>(question, parameters).then(
      (value) => {
        remember(key, value);
        if (wanted) set({ key, value, problem: null });
      },
      (error: Error) => wanted && set({ key, value: null, problem: error.message }),
    );
    return () => {
      wanted = false;
    };
  }, [key]);
  if (question === null) return { value: null, problem: null, waiting: false };
  if (cache.has(key)) return { value: cache.get(key) as T, problem: null, waiting: false };
  if (state.key === key) return { value: state.value, problem: state.problem, waiting: false };
  return { value: null, problem: null, waiting: true };
}

// ---- what answers look like ----

export interface FileState {
  name: string;
  ready: boolean;
  problem: string | null;
  read: number;
  size: number;
}

export interface Metric {
  name: string;
  help: string;
  unit: string;
  total: number;
}

export interface Overview {
  name: string;
  kind: string | null;
  problem: string | null;
  notice: string | null;
  command: string | null;
  metrics: Metric[];
  views: string[];
  facts: { label: string; value: number | string; unit: string }[];
}

// parent, function, total, self, place, hidden
export type TreeNode = [number, number, number, number, number, number];
// name, library, self, total
export type TreeFunction = [string, string, number, number];

export interface Tree {
  metric: string;
  unit: string;
  total: number; // of the whole tree
  shortened: number;
  tree_nodes: number;
  node: string;
  path: string[];
  nodes: TreeNode[];
  functions: TreeFunction[];
}

export interface Row {
  name: string;
  library: string;
  self: number;
  total: number;
}

export interface Rows {
  metric: string;
  unit: string;
  total: number;
  count: number;
  offset: number;
  rows: Row[];
}
