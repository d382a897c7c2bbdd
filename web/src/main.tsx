// The page: which file, which view, which metric; loading, and files that are damaged.
import './style.css';
import { render } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { ask, offline, useAnswer, type FileState, type Overview as Facts } from './ask';
import { Calls, SourceView } from './calls';
import { CallTable } from './calltable';
import { DiagnosisView } from './diagnosis';
import { Compare } from './diff';
import { Findings } from './findings';
import { Flame } from './flame';
import { amount, bytes } from './format';
import { Histograms } from './histograms';
import { CallMap } from './map';
import { Overview, viewNames } from './overview';
import { Problem, Waiting } from './parts';
import { Points } from './points';
import { Query } from './query';
import type { Shown } from './shown';
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
      if (event.key === '/' && !/INPUT|TEXTAREA|SELECT/.test(target.tagName)) {
        const field = document.getElementById('search');
        if (field) {
          field.focus();
          event.preventDefault();
        }
      }
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, []);
  const number = files && state.file < files.length ? state.file : 0;
  const file = files?.[number];
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById('main')?.focus(); }}>Skip to the view</a>
      <header>
        <h1>Quern</h1>
        {files && files.length > 1 ? (
          <select aria-label="File" value={number} title={file?.name}
            onChange={(event) => go({ file: Number((event.target as HTMLSelectElement).value), node: '', from: '', to: '', metric: '', select: '' })}>
            {files.map((one, i) => <option key={i} value={i}>{one.name}</option>)}
          </select>
        ) : (
          <span class="file-name" title={file?.name}>{file?.name}</span>
        )}
        <span class="spread" />
        <select aria-label="Colours" value={theme} onChange={(event) => setTheme((event.target as HTMLSelectElement).value as Theme)}>
          <option value="auto">System colours</option>
          <option value="light">Light</option>
          <option value="dark">Dark</option>
        </select>
      </header>
      {lost ? (
        <main id="main" tabIndex={-1}><Problem text={`The server does not answer: ${lost}. Is quern view still running?`} /></main>
      ) : !file ? (
        <main id="main" tabIndex={-1}><Waiting /></main>
      ) : !file.ready ? (
        <main id="main" tabIndex={-1}><Loading file={file} /></main>
      ) : (
        <File key={number} state={{ ...state, file: number }} go={go} dark={dark} files={files!.map((one) => one.name)} />
      )}
    </>
  );
}

function Loading({ file }: { file: FileState }) {
  return (
    <div class="loading" role="status">
      <p>Reading {file.name}: {bytes(file.read)} of {bytes(file.size)}</p>
      <progress max={file.size || 1} value={file.read} aria-label="Read so far" />
    </div>
  );
}

const none = { name: '', help: '', unit: '', total: 0 };

function File(props: Pick<Shown, 'state' | 'go' | 'dark' | 'files'>) {
  const { state, go } = props;
  const part = state.from || state.to ? { from: state.from || undefined, to: state.to || undefined } : {};
  const answer = useAnswer<Facts>('overview', { file: state.file, ...part });
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
  const views = ['overview', ...overview.views.filter((name) => !offline || !['source', 'query'].includes(name)),
    ...(props.files.length > 1 && overview.views.includes('flame') ? ['diff'] : [])];
  // What the file is about comes first.
  for (const name of ['findings', 'points'])
    if (views.includes(name)) views.splice(1, 0, ...views.splice(views.indexOf(name), 1));
  const view = views.includes(state.view) ? state.view : 'overview';
  document.title = `${overview.name} · ${viewNames[view]} · Quern`;
  return (
    <>
      <nav class="views" aria-label="Views">
        {views.map((name) => (
          <button type="button" key={name} aria-current={name === view ? 'page' : undefined} onClick={() => go({ view: name, sort: '' })}>
            {viewNames[name] || name}
          </button>
        ))}
      </nav>
      <div class="bar-line">
        {overview.metrics.length > 0 && !['findings', 'points', 'query', 'timeline', 'histograms', 'diagnosis'].includes(view) && (
          <label class="field">
            Metric
            <select value={metric.name} onChange={(event) => go({ metric: (event.target as HTMLSelectElement).value, node: '' })}>
              {overview.metrics.map((one) => (
                <option key={one.name} value={one.name}>{one.help}: {amount(one.total, one.unit)}</option>
              ))}
            </select>
          </label>
        )}
        {(state.from || state.to) && (
          <span class="window-chip">
            a window of the run{' '}
            <button type="button" onClick={() => go({ from: '', to: '', node: '' })}>show all</button>
          </span>
        )}
        {answer.waiting && <Waiting what="Reading the window…" />}
      </div>
      {overview.notice && <p class="notice" role="status">{overview.notice}</p>}
      <main id="main" tabIndex={-1} class={`view-${view}`}>
        <View view={view} shown={shown} />
      </main>
    </>
  );
}

function Damaged({ overview }: { overview: Facts }) {
  return (
    <main id="main" tabIndex={-1} class="damaged">
      <h2>{overview.name} cannot be read</h2>
      <p role="alert" data-testid="problem">{overview.problem}</p>
      <p class="hint">
        {offline ? 'Write the page anew from a file that is whole.' :
          'Nothing of it is shown. If the program was still running when the file was copied, copy it again; otherwise record the run again.'}
      </p>
    </main>
  );
}

function View({ view, shown }: { view: string; shown: Shown }) {
  switch (view) {
    case 'flame': return <Flame shown={shown} />;
    case 'map': return <CallMap shown={shown} />;
    case 'findings': return <Findings shown={shown} />;
    case 'calls': return <Calls shown={shown} />;
    case 'source': return <SourceView shown={shown} />;
    case 'diff': return <Compare shown={shown} />;
    case 'diagnosis': return <DiagnosisView shown={shown} />;
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
