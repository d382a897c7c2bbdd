// Tables: only the rows in sight are in the page; those of the server come in pages.
import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { csv, CopyButton, download } from './parts';

export interface Column<Row> {
  key: string;
  label: string;
  hint?: string;
  text: (row: Row) => string | number; // for copying and CSV
  show?: (row: Row) => ComponentChildren;
  title?: (row: Row) => string;
  numeric?: boolean;
  sortable?: boolean;
  wide?: boolean; // a name: comes first on a phone
  chart?: boolean; // as wide, in its place
  full?: boolean; // short enough to be never cut
}

const ROW = 30, HEAD = 34;
const PAGE = 200, ALL = 20000; // rows that are asked for at once
const COPIED = 5000;

// Rows by number; undefined: not here yet.
export interface Source<Row> {
  count: number;
  row: (index: number) => Row | undefined;
  all: () => Promise<Row[]>;
}

export function listed<Row>(rows: Row[]): Source<Row> {
  return { count: rows.length, row: (index) => rows[index], all: async () => rows };
}

// The row that is selected by name, or without a selection the first; undefined: it is not here yet,
// or not among so many.
export function selected<Row>(source: Source<Row>, select: string, name: (row: Row) => string, most = Infinity): Row | undefined {
  for (let i = 0; i < source.count && i < most; i++) {
    const row = source.row(i);
    if (!row || !select || name(row) === select) return row;
  }
  return undefined;
}

// Pages of rows from somewhere, kept as long as the key stays.
export function usePages<Row, Head extends { count: number; rows: Row[] }>(
  key: string,
  load: (offset: number, count: number) => Promise<Head>,
): { head: Head | null; problem: string | null; source: Source<Row> } {
  const [pages, set] = useState<{ key: string; head: Head | null; problem: string | null; list: Map<number, Row[]> }>({
    key: '', head: null, problem: null, list: new Map(),
  });
  const asked = useRef(new Set<string>());
  const latest = useRef(key);
  latest.current = key;
  const fetchPage = (page: number) => {
    const name = `${key}#${page}`;
    if (asked.current.has(name)) return;
    asked.current.add(name);
    load(page * PAGE, PAGE).then(
      (head) => {
        if (latest.current !== key) return;
        set((old) => {
          const list = new Map(old.key === key ? old.list : []);
          list.set(page, head.rows);
          return { key, head, problem: null, list };
        });
      },
      (error: Error) => latest.current === key && set({ key, head: null, problem: error.message, list: new Map() }),
    );
  };
  useEffect(() => {
    asked.current.clear();
    fetchPage(0);
  }, [key]);
  const fresh = pages.key === key;
  return {
    head: pages.head && fresh ? pages.head : null,
    problem: fresh ? pages.problem : null,
    source: {
      count: fresh && pages.head ? pages.head.count : 0,
      row: (index) => {
        const page = Math.floor(index / PAGE);
        const rows = pages.list.get(page);
        if (!rows) fetchPage(page);
        return rows?.[index % PAGE];
      },
      all: async () => {
        const rows: Row[] = [];
        for (let more = 1; more; ) {
          const page = await load(rows.length, ALL);
          rows.push(...page.rows);
          more = page.rows.length && rows.length < page.count ? 1 : 0;
        }
        return rows;
      },
    },
  };
}

// Enter opens a row, arrows go to its neighbours.
function onKey(event: KeyboardEvent, open: () => void): void {
  const row = event.currentTarget as HTMLElement;
  if (event.key === 'Enter') open();
  else if (event.key === 'ArrowDown') (row.nextElementSibling as HTMLElement | null)?.focus();
  else if (event.key === 'ArrowUp') (row.previousElementSibling as HTMLElement | null)?.focus();
  else return;
  event.preventDefault();
}

export function Table<Row>(props: {
  label: string;
  columns: Column<Row>[];
  source: Source<Row>;
  sort?: string;
  setSort?: (key: string) => void;
  onRow?: (row: Row) => void;
  selected?: (row: Row) => boolean;
  name: string; // of the file to download
  tall?: boolean;
  whole?: boolean; // as high as its rows, which are few
}) {
  const { source } = props;
  // On a phone names come first: numbers are what may be scrolled to.
  const columns = window.innerWidth < 640
    ? [...props.columns.filter((one) => one.wide), ...props.columns.filter((one) => !one.wide)] : props.columns;
  const box = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [seen, setSeen] = useState(600);
  useEffect(() => setSeen(box.current?.clientHeight || 600), []);
  useEffect(() => {
    if (box.current) box.current.scrollTop = 0;
    setTop(0);
  }, [props.sort, source.count]);
  // What a link has chosen is in sight.
  let chosen = -1;
  for (let i = 0; props.selected && chosen < 0 && i < Math.min(source.count, PAGE); i++) {
    const row = source.row(i);
    if (row && props.selected(row)) chosen = i;
  }
  useEffect(() => {
    const view = box.current;
    if (!view || chosen < 0) return;
    const room = view.clientHeight - HEAD;
    if (chosen * ROW < view.scrollTop || (chosen + 1) * ROW > view.scrollTop + room) view.scrollTop = (chosen + 0.5) * ROW - room / 2;
  }, [chosen, source.count]);
  const first = Math.max(0, Math.floor(top / ROW) - 5);
  const last = props.whole ? source.count : Math.min(source.count, Math.ceil((top + seen) / ROW) + 5);
  const rows: [number, Row | undefined][] = [];
  for (let i = first; i < last; i++) rows.push([i, source.row(i)]);
  const cells = (all: Row[]) => all.map((row) => props.columns.map((column) => column.text(row)));
  return (
    <div class="table-outer">
      <div class="table-scroll" ref={box} tabIndex={0} role="region" aria-label={props.label}
        onScroll={(event) => setTop((event.target as HTMLElement).scrollTop)}
        style={{ maxHeight: props.whole ? 'none' : props.tall ? '70vh' : '45vh' }}>
        <table aria-rowcount={source.count + 1}>
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column.key} scope="col" class={column.numeric ? 'numeric' : ''} title={column.hint}
                  aria-sort={props.sort === column.key ? (column.numeric ? 'descending' : 'ascending') : undefined}>
                  {column.sortable && props.setSort ? (
                    <button type="button" class="sort" onClick={() => props.setSort!(column.key)}>
                      {column.label}
                      <span aria-hidden="true">{props.sort === column.key ? ' ▾' : ''}</span>
                    </button>
                  ) : (
                    column.label
                  )}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {first > 0 && <tr aria-hidden="true" style={{ height: `${first * ROW}px` }}><td colSpan={columns.length} /></tr>}
            {rows.map(([index, row]) => (
              <tr key={index} aria-rowindex={index + 2} tabIndex={row && props.onRow ? 0 : undefined}
                onKeyDown={row && props.onRow ? (event) => onKey(event, () => props.onRow!(row)) : undefined}
                class={(props.onRow ? 'clickable ' : '') + (row && props.selected?.(row) ? 'chosen' : '')}
                onClick={row && props.onRow ? () => props.onRow!(row) : undefined}>
                {columns.map((column) => (
                  <td key={column.key} class={(column.numeric ? 'numeric ' : '') + (column.wide ? 'wide' : column.chart ? 'chart-cell' : column.full ? 'full' : '')}
                    title={row ? (column.title ? column.title(row) : String(column.text(row))) : ''}>
                    {row ? (column.show ? column.show(row) : column.text(row)) : '…'}
                  </td>
                ))}
              </tr>
            ))}
            {last < source.count && (
              <tr aria-hidden="true" style={{ height: `${(source.count - last) * ROW}px` }}><td colSpan={columns.length} /></tr>
            )}
          </tbody>
        </table>
        {source.count === 0 && <p class="empty">Nothing to show.</p>}
      </div>
      <div class="table-tools">
        <span class="quiet">{source.count.toLocaleString('en')} {source.count === 1 ? 'row' : 'rows'}</span>
        <button type="button" onClick={async () => {
          const all = await source.all();
          download(`${props.name}.csv`, csv(props.columns.map((column) => column.key), cells(all)));
        }}>Download CSV</button>
        <CopyButton text={async () => [props.columns.map((column) => column.label), ...cells((await source.all()).slice(0, COPIED))]
          .map((row) => row.join('\t')).join('\n')}>Copy as text</CopyButton>
      </div>
    </div>
  );
}

// Sorting of rows that are all here.
export function useSorted<Row>(rows: Row[], columns: Column<Row>[], sort: string): Row[] {
  return useMemo(() => {
    const column = columns.find((one) => one.key === sort);
    if (!column) return rows;
    return [...rows].sort((a, b) => {
      const left = column.text(a), right = column.text(b);
      if (typeof left === 'number' && typeof right === 'number') return right - left;
      return String(left).localeCompare(String(right));
    });
  }, [rows, sort]);
}
