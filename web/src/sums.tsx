// Sums by function, by library, by thread.
import { ask, offline, useAnswer, type Row, type Rows } from './ask';
import { amount, exact, percent } from './format';
import { Problem, Search, Waiting } from './parts';
import type { Shown } from './shown';
import { listed, Table, usePages, useSorted, type Column } from './table';

function Bar({ part, whole }: { part: number; whole: number }) {
  const share = whole ? Math.min(100, (100 * part) / whole) : 0;
  return (
    <span class="bar" aria-hidden="true">
      <span style={{ width: `${share}%` }} />
    </span>
  );
}

// These have either source lines or the library of a function.
const partly = ['massif', 'dhat'];

export function Sums({ shown, question }: { shown: Shown; question: 'functions' | 'libraries' }) {
  const { state, go, metric } = shown;
  const sort = ['self', 'total', 'name'].includes(state.sort) ? state.sort : 'self';
  const key = [question, state.file, metric.name, sort, state.search, state.from, state.to].join('|');
  const load = async (offset: number, count: number): Promise<Rows> => {
    const rows = await ask<Rows>(question, {
      file: state.file, metric: metric.name, sort, search: state.search, offset, count, ...shown.window,
    });
    return offline ? local(rows, sort, state.search, offset, count) : rows;
  };
  const { head, problem, source } = usePages<Row, Rows>(key, load);
  if (problem) return <Problem text={problem} />;
  const total = head ? head.total : metric.total;
  const columns: Column<Row>[] = [
    {
      key: 'self', label: 'Self', hint: 'Without what it calls', numeric: true, sortable: true,
      text: (row) => row.self, title: (row) => exact(row.self, metric.unit),
      show: (row) => <span class="with-bar"><Bar part={row.self} whole={total} /><span>{amount(row.self, metric.unit)} <small>{percent(row.self, total)}</small></span></span>,
    },
    {
      key: 'total', label: 'Inclusive', hint: 'With everything it calls', numeric: true, sortable: true,
      text: (row) => row.total, title: (row) => exact(row.total, metric.unit),
      show: (row) => <>{amount(row.total, metric.unit)} <small>{percent(row.total, total)}</small></>,
    },
    { key: 'name', label: question === 'functions' ? 'Function' : 'Library', text: (row) => row.name, sortable: true, wide: true },
  ];
  if (question === 'functions' && shown.overview.views.includes('libraries')) columns.push({ key: 'library', label: 'Library', text: (row) => row.library });
  // Without calls both sums are the same.
  if (shown.overview.kind === 'cachegrind') columns.splice(1, 1);
  return (
    <section>
      <div class="controls">
        <Search id="search" value={state.search} label={`Search ${question}`} set={(search) => go({ search }, true)} />
      </div>
      {question === 'libraries' && partly.includes(shown.overview.kind ?? '') && (
        <p class="hint">Of functions whose source lines it knows, this file does not name the library: they are [unknown].</p>
      )}
      {head ? (
        <Table label={question === 'functions' ? 'Functions' : 'Libraries'} columns={columns} source={source}
          sort={sort} setSort={(sort) => go({ sort })} name={question} tall
          onRow={question === 'functions' ? (row) => go({ view: 'flame', search: row.name, node: '' }) : undefined} />
      ) : (
        <Waiting />
      )}
    </section>
  );
}

function local(answer: Rows, sort: string, search: string, offset: number, count: number): Rows {
  const wanted = search.toLowerCase();
  const rows = answer.rows.filter(
    (row) => !wanted || row.name.toLowerCase().includes(wanted) || row.library.toLowerCase().includes(wanted));
  rows.sort((a, b) => (sort === 'name' ? a.name.localeCompare(b.name) : sort === 'total' ? b.total - a.total : b.self - a.self));
  return { ...answer, count: rows.length, offset, rows: rows.slice(offset, offset + count) };
}

interface Thread {
  thread: number;
  tid: number;
  name: string | null;
  [metric: string]: number | string | null;
}

const headings: Record<string, string> = {
  peak: 'At the peak', total: 'Allocated', count: 'Blocks', leaked: 'Not freed', temporary: 'Temporary',
};

export function Threads({ shown }: { shown: Shown }) {
  const { state, go, overview, metric } = shown;
  const answer = useAnswer<{ rows: Thread[] }>('threads', { file: state.file, ...shown.window });
  const sort = state.sort || metric.name;
  const columns: Column<Thread>[] = [
    { key: 'thread', label: 'Thread', text: (row) => row.thread, numeric: true },
    { key: 'name', label: 'Name', text: (row) => row.name || '?', sortable: true, wide: true },
    { key: 'tid', label: 'Id', text: (row) => row.tid, numeric: true },
    ...overview.metrics.map((one): Column<Thread> => ({
      key: one.name, label: headings[one.name] || one.name, hint: one.help, numeric: true, sortable: true,
      text: (row) => row[one.name] as number,
      title: (row) => exact(row[one.name] as number, one.unit),
      show: (row) => amount(row[one.name] as number, one.unit),
    })),
  ];
  const rows = useSorted(answer.value ? answer.value.rows : [], columns, sort);
  if (answer.problem) return <Problem text={answer.problem} />;
  if (!answer.value) return <Waiting what="Reading the recording once more…" />;
  return (
    <Table label="Threads" columns={columns} source={listed(rows)} sort={sort} setSort={(sort) => go({ sort })}
      name="threads" tall />
  );
}
