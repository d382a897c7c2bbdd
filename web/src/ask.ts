// Where answers come from: the server, or the file this page is in.
import { useEffect, useRef, useState } from 'preact/hooks';

export type Parameters = Record<string, string | number | boolean | undefined>;

// What a page in a file holds: the questions and the parameters that distinguish their answers, the
// answers, the parts of the run, and comparisons of every two files.
interface Kept {
  questions: Record<string, { keys: string[]; in_windows: boolean }>; // the table in src/view/html.c
  files: { answers: Record<string, unknown>; windows: { from: number; to: number; answers: Record<string, unknown> }[] }[];
  diffs: Record<string, unknown>;
}

const holder = document.getElementById('answers');
const kept: Kept | null = holder ? JSON.parse(holder.textContent || '{}') : null;

// The page is a file by itself: what it holds is all there is.
export const offline = kept !== null;

// The parts of the run that a page in a file can show.
export function windowsOf(file: number): { from: number; to: number }[] {
  return kept?.files[file]?.windows ?? [];
}

function words(parameters: Parameters): string {
  const list = new URLSearchParams();
  for (const name of Object.keys(parameters).sort()) {
    const value = parameters[name];
    if (value === undefined || value === '') continue;
    list.set(name, value === true ? '1' : value === false ? '0' : String(value));
  }
  return list.toString();
}

function answersOf(question: string, parameters: Parameters): Record<string, unknown> {
  if (question === 'diff') return kept!.diffs;
  const file = kept!.files[Number(parameters.file) || 0];
  if ((!parameters.from && !parameters.to) || kept!.questions[question]?.in_windows === false) return file.answers;
  const part = file.windows.find((one) => String(one.from) === String(parameters.from || 0) && String(one.to) === String(parameters.to));
  if (!part) throw new Error('this part of the run is not in the file; quern view shows any');
  return part.answers;
}

function fromFile(question: string, parameters: Parameters): unknown {
  if (question === 'files')
    return { files: kept!.files.map((file) => ({ name: (file.answers.overview as Overview).name, kind: (file.answers.overview as Overview).kind, ready: true, problem: null, read: 0, size: 0 })) };
  const names = kept!.questions[question]?.keys ?? [];
  const key = names.length
    ? question + '?' + names.map((name) => {
        const value = parameters[name];
        return `${name}=${value === true ? '1' : value === false || value === undefined ? '0' : value}`;
      }).join('&')
    : question;
  const answers = answersOf(question, parameters);
  if (!(key in answers)) throw new Error('this is not in the file; quern view shows it');
  return answers[key];
}

export async function ask<T>(question: string, parameters: Parameters = {}, signal?: AbortSignal): Promise<T> {
  if (offline) return fromFile(question, parameters) as T;
  const answer = await fetch(`ask/${question}?${words(parameters)}`, { signal }).catch(() => {
    throw new Error(signal?.aborted ? CANCELLED : 'the server does not answer; is quern view still running?');
  });
  const type = answer.headers.get('Content-Type') || '';
  if (!type.startsWith('application/json')) throw new Error((await answer.text()).trim());
  const value = await answer.json();
  if (!answer.ok) throw new Error(value.problem || `status ${answer.status}`);
  return value as T;
}

// ---- questions that take long ----

export const CANCELLED = 'You have cancelled this.';
const LONG = 1000; // milliseconds, after which progress is asked for
const EVERY = 400;

// A question that is under way. The server says what it does for it, and how far that is.
export interface Work {
  id: string;
  what: string; // '' until it is known
  share: number | null; // 0 to 1
  cancel: () => void;
}

let works: Work[] = [];
const watchers = new Set<(works: Work[]) => void>();
let poll: ReturnType<typeof setTimeout> | undefined;

function showWorks(): void {
  for (const watcher of watchers) watcher([...works]);
}

interface Progress {
  works: { id: string; what: string | null; done: number; total: number }[];
}

async function askProgress(): Promise<void> {
  const known = await ask<Progress>('works').catch((): Progress => ({ works: [] }));
  works = works.map((work) => {
    const one = known.works.find(({ id }) => id === work.id);
    return one?.what ? { ...work, what: one.what, share: one.total ? Math.min(1, one.done / one.total) : null } : work;
  });
  showWorks();
  poll = works.length ? setTimeout(askProgress, EVERY) : undefined;
}

// Asks, and has a work for it while it takes long. Aborting it cancels the work of the server.
export async function askLong<T>(question: string, parameters: Parameters, control: AbortController): Promise<T> {
  if (offline) return ask<T>(question, parameters);
  const id = Math.random().toString(36).slice(2);
  const timer = setTimeout(() => {
    works.push({ id, what: '', share: null, cancel: () => control.abort() });
    if (poll === undefined) poll = setTimeout(askProgress, 0);
    showWorks();
  }, LONG);
  try {
    return await ask<T>(question, { ...parameters, work: id }, control.signal);
  } finally {
    clearTimeout(timer);
    works = works.filter((work) => work.id !== id);
    showWorks();
  }
}

// The questions under way that take long.
export function useWorks(): Work[] {
  const [list, set] = useState(works);
  useEffect(() => {
    watchers.add(set);
    set(works);
    return () => void watchers.delete(set);
  }, []);
  return list;
}

export interface Answer<T> {
  value: T | null;
  problem: string | null;
  waiting: boolean;
}

const cache = new Map<string, unknown>();
const CACHED = 60;

// Whatever is shown next is asked for again.
export function forgetAnswers(): void {
  cache.clear();
}

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
    const control = new AbortController();
    askLong<T>(question, parameters, control).then(
      (value) => {
        remember(key, value);
        if (wanted) set({ key, value, problem: null });
      },
      (error: Error) => wanted && set({ key, value: null, problem: error.message }),
    );
    // What nobody wants to see any more is not worked for.
    return () => {
      wanted = false;
      control.abort();
    };
  }, [key]);
  // What is in sight stays, even when the cache has dropped it for newer answers.
  const held = useRef<{ key: string; value: T } | null>(null);
  if (question === null) return { value: null, problem: null, waiting: false };
  if (cache.has(key)) held.current = { key, value: cache.get(key) as T };
  if (held.current?.key === key) return { value: held.current.value, problem: null, waiting: false };
  if (state.key === key) return { value: state.value, problem: state.problem, waiting: false };
  return { value: null, problem: null, waiting: true };
}

// ---- what answers look like ----

export interface FileState {
  name: string;
  kind: string | null; // null: not known, or not yet
  ready: boolean;
  problem: string | null;
  read: number;
  size: number;
  so_far?: { time: number; held: number; peak: number; allocations: number; points: [number, number][] };
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
