// The page: which file, which view, which metric; loading, and files that are damaged.
import './style.css';
import { render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { ask, offline, useAnswer, type FileState, type Overview as Facts } from './ask';
import { Boundary } from './boundary';
import { Calls } from './calls';
import { CallTable } from './calltable';
import { DiagnosisView } from './diagnosis';
import { comparable, Compare } from './diff';
import { Findings } from './findings';
import { Flame } from './flame';
import { amount, described, time } from './format';
import { Loading } from './loading';
import { Help } from './help';
import { Histograms } from './histograms';
import { CallMap } from './map';
import { Overview, viewNames } from './overview';
import { Problem, Waiting } from './parts';
import { PlacesView } from './places';
import { Points } from './points';
import { Query } from './query';
import type { Shown } from './shown';
import { AssemblyView, SourceView } from './source';
import { useAddress } from './state';
import { Sums, Threads } from './sums';
import { TimelineView } from './timeline';

type Theme = 'auto' | 'light' | 'dark';

function useTheme(): [boolean, Theme, (theme: Theme) => void] {
  const media = window.matchMedia('(prefers-color-scheme: dark)');
  const [system, setSystem] = useState(media.matches);
  const [theme, setTheme] = useState<Theme>(() => {
    try {
      return (localStorage.getItem('quern-theme') as Theme) || 'auto';
    } catch {
      return 'auto';
    }
  });
  useEffect(() => {
    const follow = () => setSystem(media.matches);
    media.addEventListener('change', follow);
    return () => media.removeEventListener('change', follow);
  }, []);
  const dark = theme === 'auto' ? system : theme === 'dark';
  useEffect(() => {
    document.documentElement.dataset.theme = dark ? 'dark' : 'light';
  }, [dark]);
  const choose = (next: Theme) => {
    setTheme(next);
    try {
      localStorage.setItem('quern-theme', next);
    } catch {
      // A file opened from disk may have no storage; the choice then lasts as long as the page.
    }
  };
  return [dark, theme, choose];
}

function App() {
  const [files, setFiles] = useState<FileState[] | null>(null);
  const [lost, setLost] = useState<string | null>(null);
  const [state, go] = useAddress();
  const [dark, theme, setTheme] = useTheme();
  const [help, setHelp] = useState(false);
  useEffect(() => {
    let timer = 0;
    const look = () =>
      ask<{ files: FileState[] }>('files').then(
        (answer) => {
          setFiles(answer.files);
          if (answer.files.some((file) => !file.ready)) timer = window.setTimeout(look, 300);
        },
        (error: Error) => setLost(error.message),
      );
    look();
    return () => clearTimeout(timer);
  }, []);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      if (/INPUT|TEXTAREA|SELECT/.test(target.tagName) || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === '/') document.getElementById('search')?.focus();
      else if (event.key === '?') setHelp(true);
      else if (event.key === '[' || event.key === ']') {
        const tabs = [...document.querySelectorAll<HTMLButtonElement>('nav.views button')];
        const here = tabs.findIndex((one) => one.hasAttribute('aria-current'));
        tabs[here + (event.key === ']' ? 1 : -1)]?.click();
      } else return;
      event.preventDefault();
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, []);
  const [dropped, setDropped] = useState('');
  useEffect(() => {
    // Without this, the browser would leave the page and show the file.
    const over = (event: DragEvent) => event.preventDefault();
    const drop = (event: DragEvent) => {
      event.preventDefault();
      const file = event.dataTransfer?.files[0];
      if (file) setDropped(file.name);
    };
    window.addEventListener('dragover', over);
    window.addEventListener('drop', drop);
    return () => {
      window.removeEventListener('dragover', over);
      window.removeEventListener('drop', drop);
    };
  }, []);
  const [fault, setFault] = useState('');
  useEffect(() => {
    // What fails in an event handler, or after it, is not seen by a boundary.
    const fail = (thrown: unknown, text: string) => setFault((thrown instanceof Error && thrown.message) || text || String(thrown));
    const failed = (event: ErrorEvent) => fail(event.error, event.message);
    const rejected = (event: PromiseRejectionEvent) => fail(event.reason, '');
    window.addEventListener('error', failed);
    window.addEventListener('unhandledrejection', rejected);
    return () => {
      window.removeEventListener('error', failed);
      window.removeEventListener('unhandledrejection', rejected);
    };
  }, []);
  const number = files && state.file < files.length ? state.file : 0;
  const file = files?.[number];
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById('main')?.focus(); }}>Skip to the view</a>
      <header>
        <h1><Mark /> <span class="brand">Quern</span></h1>
        {files && files.length > 1 ? (
          <select aria-label="File" value={number} title={file?.name}
            onChange={(event) => go({ file: Number((event.target as HTMLSelectElement).value), node: '', open: '', from: '', to: '', metric: '', select: '', around: '', focus: '', ignore: '', hide: '', group: '' })}>
            {files.map((one, i) => <option key={i} value={i}>{one.name}</option>)}
          </select>
        ) : (
          <span class="file-name" title={file?.name}>{file?.name}</span>
        )}
        <span class="spread" />
        {offline && <button type="button" class="chip" onClick={() => setHelp(true)}>saved page</button>}
        <select aria-label="Colours" class="theme" value={theme} onChange={(event) => setTheme((event.target as HTMLSelectElement).value as Theme)}>
          <option value="auto">Auto</option>
          <option value="light">Light</option>
          <option value="dark">Dark</option>
        </select>
        <button type="button" class="ask" aria-label="Keyboard help" title="Keyboard help (?)" onClick={() => setHelp(true)}>?</button>
      </header>
      {dropped && (
        <p class="notice" role="status" data-testid="dropped">
          This page only reads the files that it was started with. To see this one, run <code>quern view {/\s/.test(dropped) ? `'${dropped}'` : dropped}</code>{' '}
          <button type="button" onClick={() => setDropped('')}>Close</button>
        </p>
      )}
      {fault && (
        <p class="notice" role="alert" data-testid="fault">
          Something in this page has failed: {fault}. This is a fault of the page, not of your program.{' '}
          <button type="button" onClick={() => location.reload()}>Load the page again</button>{' '}
          <button type="button" onClick={() => setFault('')}>Close</button>
        </p>
      )}
      {help && <Help close={() => setHelp(false)} />}
      {lost ? (
        <main id="main" tabIndex={-1}><Problem text={lost} /></main>
      ) : !file ? (
        <main id="main" tabIndex={-1}><Waiting /></main>
      ) : !file.ready ? (
        <main id="main" tabIndex={-1}><Loading file={file} /></main>
      ) : (
        <Boundary key={number} what="The page of this file" where={location.hash} main>
          <File state={{ ...state, file: number }} go={go} dark={dark} files={files!} />
        </Boundary>
      )}
    </>
  );
}

// Two stones, as in a mill.
function Mark() {
  return (
    <svg class="logo" width="22" height="22" viewBox="0 0 22 22" aria-hidden="true">
      <ellipse cx="11" cy="15" rx="10" ry="4.4" class="stone-low" />
      <path d="M2.6 8.6v3.2c0 2 3.8 3.6 8.4 3.6s8.4-1.6 8.4-3.6V8.6z" class="stone-side" />
      <ellipse cx="11" cy="8.6" rx="8.4" ry="3.7" class="stone-top" />
      <ellipse cx="11" cy="8.4" rx="2" ry="0.9" class="stone-eye" />
    </svg>
  );
}

// Views that a window does not change, and why.
const whole: Record<string, string> = {
  diagnosis: 'what leaks or grows is known at its end',
  diff: 'files are compared as a whole',
  findings: 'findings have no time',
};

function windowText(kind: string | null, from: string, to: string): string {
  if (kind !== 'recording') return 'a part of the run';
  return `${from ? time(Number(from)) : 'the start'} to ${to ? time(Number(to)) : 'the end'}`;
}

const none = { name: '', help: '', unit: '', total: 0 };

// A metric of one's own, as a sum of events with weights.
function Formula({ shown }: { shown: Shown }) {
  const { state, go, overview } = shown;
  const is = isFormula(state.metric), known = overview.metrics.some((one) => one.name === state.metric);
  const events = overview.metrics.map((one) => one.name).filter((name) => !isFormula(name));
  const example = events.length > 1 ? `${events[0]} + 10 ${events[1]}` : `2 ${events[0]}`;
  return (
    <>
      <label class="field" title={`A sum of events, each with a weight, such as ${example}`}>
        Formula
        <input type="text" class="formula" key={state.metric} defaultValue={is ? state.metric : ''} placeholder={example}
          onChange={(event) => go({ metric: (event.target as HTMLInputElement).value.trim(), node: '' })} />
      </label>
      {state.metric && !known && (
        <span class="hint" role="alert">“{state.metric}” is not a sum of {events.slice(0, 6).join(', ')}{events.length > 6 ? ' …' : ''}; shown is {shown.metric.help}.</span>
      )}
    </>
  );
}

const isFormula = (metric: string) => /[\s+*]/.test(metric);

function File(props: Pick<Shown, 'state' | 'go' | 'dark' | 'files'>) {
  const { state, go } = props;
  const part = state.from || state.to ? { from: state.from || undefined, to: state.to || undefined } : {};
  const answer = useAnswer<Facts>('overview', { file: state.file, ...part, metric: isFormula(state.metric) ? state.metric : undefined });
  const [last, keep] = useState<Facts | null>(null);
  useEffect(() => {
    if (answer.value) keep(answer.value);
  }, [answer.value]);
  const overview = answer.value || last;
  if (answer.problem) return <main id="main" tabIndex={-1}><Problem text={answer.problem} /></main>;
  if (!overview) return <main id="main" tabIndex={-1}><Waiting /></main>;
  if (overview.problem) return <Damaged overview={overview} />;
  const metric = overview.metrics.find((one) => one.name === state.metric) || overview.metrics[0] || none;
  const shown: Shown = { ...props, overview, metric, window: part };
  const views = ['overview', ...overview.views.filter((name) => !offline || name !== 'query'),
    ...(comparable(props.files, state.file).length && overview.views.includes('flame') ? ['diff'] : [])];
  // What the file is about comes first.
  for (const name of ['diagnosis', 'places', 'timeline', 'points', 'findings'])
    if (views.includes(name)) views.splice(1, 0, ...views.splice(views.indexOf(name), 1));
  const view = views.includes(state.view) ? state.view : 'overview';
  document.title = `${overview.name} · ${viewNames[view]} · Quern`;
  return (
    <>
      <Tabs views={views} view={view} part={!!(state.from || state.to)} choose={(name) => go({ view: name, sort: '' })} />
      <div class="bar-line">
        {overview.metrics.length > 0 && !['findings', 'places', 'points', 'query', 'timeline', 'histograms', 'diagnosis'].includes(view) && (
          <label class="field">
            Metric
            <select value={metric.name} onChange={(event) => go({ metric: (event.target as HTMLSelectElement).value, node: '' })}>
              {overview.metrics.map((one) => (
                <option key={one.name} value={one.name}>{described(one.help)}: {amount(one.total, one.unit)}</option>
              ))}
            </select>
          </label>
        )}
        {!offline && /^(callgrind|cachegrind)$/.test(overview.kind || '') && ['flame', 'map', 'tree', 'functions', 'libraries', 'calls', 'source', 'assembly'].includes(view) && <Formula shown={shown} />}
        {(state.from || state.to) && (
          <span class="window-chip" data-testid="window">
            {view === 'timeline' ? 'Marked: ' : whole[view] ? 'The whole run, not only ' : 'Only '}
            {windowText(overview.kind, state.from, state.to)}{whole[view] && `: ${whole[view]}`}{' '}
            <button type="button" onClick={() => go({ from: '', to: '', node: '' })}>show all</button>
          </span>
        )}
        {answer.waiting && <Waiting what="Reading the window…" />}
      </div>
      {overview.notice && <p class="notice" role="status">{overview.notice}</p>}
      <main id="main" tabIndex={-1} class={`view-${view}`}>
        <Boundary key={view} what={`The view “${viewNames[view] || view}”`} where={location.hash}>
          <View view={view} shown={shown} />
        </Boundary>
      </main>
    </>
  );
}

function Tabs({ views, view, part, choose }: { views: string[]; view: string; part: boolean; choose: (name: string) => void }) {
  const outer = useRef<HTMLElement>(null);
  useEffect(() => {
    const box = outer.current, tab = box?.querySelector<HTMLElement>('[aria-current]');
    if (box && tab) box.scrollLeft = tab.offsetLeft - (box.clientWidth - tab.offsetWidth) / 2;
  }, [view, views.length]);
  return (
    <nav class="views" aria-label="Views" ref={outer}>
      {views.map((name) => (
        <button type="button" key={name} aria-current={name === view ? 'page' : undefined} onClick={() => choose(name)}
          class={part && whole[name] ? 'elsewhere' : ''} title={part && whole[name] ? `Shows the whole run: ${whole[name]}` : undefined}>
          {viewNames[name] || name}
        </button>
      ))}
    </nav>
  );
}

function Damaged({ overview }: { overview: Facts }) {
  return (
    <main id="main" tabIndex={-1} class="damaged">
      <h2>{overview.name} cannot be read</h2>
      <p role="alert" data-testid="problem">{overview.problem}</p>
      <h3>What to do</h3>
      <ul>
        <li>If the program was still running when the file was copied, copy it again.</li>
        <li>If the file came by mail, chat or a CI artifact, fetch it again, in binary mode: compare its size with the original's.</li>
        <li>Otherwise record the run again.</li>
      </ul>
      <p class="hint">Files that can be shown: recordings of quern --tool=heap, massif.out, callgrind.out, cachegrind.out, dhat.out,
        memcheck's XML and collapsed stacks; Quern's or the peers'. Nothing of this one was taken in.</p>
    </main>
  );
}

function View({ view, shown }: { view: string; shown: Shown }) {
  if (['flame', 'map', 'tree'].includes(view) && !shown.metric.total)
    return <section><p class="empty" data-testid="empty">There is nothing to show: {described(shown.metric.help)} is 0{shown.state.from || shown.state.to ? ' in the window' : ''}.</p></section>;
  switch (view) {
    case 'flame': return <Flame shown={shown} />;
    case 'map': return <CallMap shown={shown} />;
    case 'findings': return <Findings shown={shown} />;
    case 'calls': return <Calls shown={shown} />;
    case 'source': return <SourceView shown={shown} />;
    case 'assembly': return <AssemblyView shown={shown} />;
    case 'diff': return <Compare shown={shown} />;
    case 'diagnosis': return <DiagnosisView shown={shown} />;
    case 'places': return <PlacesView shown={shown} />;
    case 'points': return <Points shown={shown} />;
    case 'query': return <Query shown={shown} />;
    case 'tree': return <CallTable shown={shown} />;
    case 'functions': return <Sums key="functions" shown={shown} question="functions" />;
    case 'libraries': return <Sums key="libraries" shown={shown} question="libraries" />;
    case 'threads': return <Threads shown={shown} />;
    case 'timeline': return <TimelineView shown={shown} />;
    case 'histograms': return <Histograms shown={shown} />;
    default: return <Overview shown={shown} />;
  }
}

render(<App />, document.getElementById('app')!);
