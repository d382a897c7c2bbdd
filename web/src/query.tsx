// SQL over a recording.
import { useEffect, useRef, useState } from 'preact/hooks';
import { askLong, offline } from './ask';
import { Problem, Waiting } from './parts';
import type { Shown } from './shown';
import { listed, Table, type Column } from './table';

type Cells = Record<string, string | number | null>;

const examples: [string, string][] = [
  ['The largest blocks', 'SELECT number, size, stack, thread, time FROM allocations ORDER BY size DESC LIMIT 20'],
  ['Stacks that hold most at the peak', 'SELECT stack, peak_bytes, folded FROM stacks ORDER BY peak_bytes DESC LIMIT 20'],
  ['Blocks by function', 'SELECT function, count(*) AS blocks, sum(size) AS bytes FROM allocations JOIN frames USING (stack) WHERE depth = 0 GROUP BY function ORDER BY bytes DESC LIMIT 20'],
  ['Memory over time', 'SELECT time, resident FROM samples LIMIT 1000'],
];

const tables: [string, string][] = [
  ['allocations', 'number size stack thread time freed_time freed_thread resizes'],
  ['stacks', 'stack allocated_bytes allocated_blocks peak_bytes peak_blocks leaked_bytes leaked_blocks temporary_blocks mapped_bytes truncated folded'],
  ['frames', 'stack depth function file line module inlined address'],
  ['threads', 'thread tid name'],
  ['modules', 'path start size offset'],
  ['regions', 'number kind bytes stack thread time mapped'],
  ['samples', 'time resident minor_faults major_faults anonymous'],
  ['marks', 'time thread kind name live_bytes live_blocks allocated_blocks'],
  ['scopes', 'name entered seconds allocations allocated_bytes freed_bytes most_allocations'],
  ['run', 'command pid started seconds peak_time complete missed resizes releases'],
];

export function Query({ shown }: { shown: Shown }) {
  const { state, go } = shown;
  const [sql, setSql] = useState(state.sql || examples[1][1]);
  const [answer, setAnswer] = useState<{ rows: Cells[]; most: number } | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const control = useRef<AbortController | null>(null);
  const run = async () => {
    const own = new AbortController();
    control.current?.abort();
    control.current = own;
    setBusy(true);
    setProblem(null);
    go({ sql }, true);
    try {
      const rows = await askLong<{ rows: Cells[]; most: number }>('query', { file: state.file, sql, ...shown.window }, own);
      if (control.current === own) setAnswer(rows);
    } catch (error) {
      if (control.current !== own) return;
      setAnswer(null);
      setProblem((error as Error).message);
    }
    if (control.current === own) setBusy(false);
  };
  // A statement that nobody waits for any more is given up.
  useEffect(() => () => {
    const last = control.current;
    control.current = null;
    last?.abort();
  }, []);
  // A link that holds a statement shows its rows.
  useEffect(() => {
    if (state.sql && !offline) run();
  }, [state.from, state.to]);
  if (offline) return <Problem text="a page in a file cannot be asked in SQL; quern view and quern query can" />;
  const names = answer?.rows.length ? Object.keys(answer.rows[0]) : [];
  const columns: Column<Cells>[] = names.map((name) => ({
    key: name, label: name, numeric: typeof answer!.rows[0][name] === 'number',
    text: (row) => row[name] ?? '',
  }));
  return (
    <section>
      <form class="query" onSubmit={(event) => { event.preventDefault(); run(); }}>
        <label for="sql">SQL (Ctrl+Enter runs it)</label>
        <textarea id="sql" rows={4} spellcheck={false} value={sql} onInput={(event) => setSql((event.target as HTMLTextAreaElement).value)}
          onKeyDown={(event) => { if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) { event.preventDefault(); run(); } }} />
        <div class="controls">
          <button type="submit" disabled={busy}>Run</button>
          <select aria-label="Examples" value="" onChange={(event) => setSql((event.target as HTMLSelectElement).value)}>
            <option value="">Examples…</option>
            {examples.map(([name, text]) => <option key={name} value={text}>{name}</option>)}
          </select>
        </div>
      </form>
      {busy && <Waiting what="Reading the recording…" />}
      {problem && <Problem text={problem} />}
      {answer && !busy && (answer.rows.length
        ? <Table label="Rows" columns={columns} source={listed(answer.rows.slice(0, answer.most))} name="query" />
        : <p class="empty">No rows.</p>)}
      {answer && answer.rows.length > answer.most && <p class="notice">Only the first {answer.most} rows are shown.</p>}
      {state.from || state.to ? <p class="hint">The tables hold what was allocated in the window, and what had happened to it by the window's end.</p> : null}
      <details open>
        <summary>Tables</summary>
        <dl class="box lines mono">{tables.map(([name, columns]) => <div key={name}><dt>{name}</dt><dd>{columns}</dd></div>)}</dl>
      </details>
    </section>
  );
}
