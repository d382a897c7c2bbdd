// What is shown is in the address, behind the #, so that a link keeps it.
import { useEffect, useState } from 'preact/hooks';

export interface State {
  file: number;
  view: string;
  metric: string; // '' is the file's first
  node: string; // what the flame graph is zoomed to
  open: string; // what was unfolded last in the table of calls; with a dot at its end: it is open
  invert: boolean;
  merge: boolean;
  icicle: boolean;
  heavy: boolean; // siblings by size, not by name
  regex: boolean; // the search is a regular expression
  focus: string; // only stacks with such a function; a regular expression, as are the next two
  ignore: string; // no stacks with such a function
  hide: string; // no frames of such functions
  around: string; // the function whose callers and callees the flame graph shows
  group: string; // functions of this class, file or object only
  by: string; // what functions are grouped by
  all: boolean; // every metric in each row of the table of calls
  stacked: boolean;
  innermost: boolean; // places are those of the innermost frame
  search: string;
  from: string; // the window, in the file's unit; '' is no bound
  to: string;
  sort: string;
  select: string; // a function, a finding
  after: string; // the file to compare with
  sql: string;
  kind: string;
}

const initial: State = {
  file: 0, view: 'overview', metric: '', node: '', open: '', invert: false, merge: false, icicle: false,
  heavy: false, regex: false, focus: '', ignore: '', hide: '', around: '', group: '', by: '',
  all: false, stacked: false, innermost: false, search: '', from: '', to: '', sort: '', select: '', after: '', sql: '', kind: '',
};

function parse(hash: string): State {
  const words = new URLSearchParams(hash.replace(/^#/, ''));
  const state: Record<string, unknown> = { ...initial };
  for (const [name, value] of words) {
    const known = (initial as unknown as Record<string, unknown>)[name];
    if (typeof known === 'boolean') state[name] = value === '1';
    else if (typeof known === 'number') state[name] = Math.max(0, parseInt(value, 10) || 0);
    else if (typeof known === 'string') state[name] = value;
  }
  return state as unknown as State;
}

function unparse(state: State): string {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    if (value === (initial as unknown as Record<string, unknown>)[name]) continue;
    words.set(name, typeof value === 'boolean' ? (value ? '1' : '0') : String(value));
  }
  return '#' + words.toString();
}

export type Go = (change: Partial<State>, replace?: boolean) => void;

export function useAddress(): [State, Go] {
  const [state, set] = useState(() => parse(location.hash));
  useEffect(() => {
    const follow = () => set(parse(location.hash));
    window.addEventListener('popstate', follow);
    window.addEventListener('hashchange', follow);
    return () => {
      window.removeEventListener('popstate', follow);
      window.removeEventListener('hashchange', follow);
    };
  }, []);
  const go: Go = (change, replace = false) => {
    const next = { ...parse(location.hash), ...change };
    history[replace ? 'replaceState' : 'pushState'](null, '', unparse(next));
    set(next);
  };
  return [state, go];
}
