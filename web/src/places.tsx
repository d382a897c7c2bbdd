// Where memory is allocated, in terms of the program's own lines: every metric in one row, the source
// of a line, and the stacks that lead to it.
import { ask, offline, useAnswer } from './ask';
import { EditorLink, EditorChoice } from './editor';
import { amount, exact, number, percent, shortened } from './format';
import { base } from './calls';
import { Check, Problem, Search, Waiting } from './parts';
import type { Shown } from './shown';
import { selected, Table, usePages, type Column } from './table';

const metrics = ['peak', 'peak_blocks', 'total', 'count', 'temporary', 'leaked', 'left'] as const;
type Metric = (typeof metrics)[number];
type Values = Record<Metric, number>;

export interface Frame {
  function: string;
  path: string | null;
  line: number;
  library: string | null;
}

export interface Place extends Frame, Values {
  place: number;
  own: boolean;
  stacks: number;
}

export interface Places {
  temporary: boolean; // the file knows
  count: number;
  rows: Place[];
}

interface Details extends Frame {
  found: boolean;
  newer: boolean;
  lines: [number, string, ...number[]][]; // line, text, values
  stack_count: number;
  stacks: (Values & { at: number; frames: Frame[] })[];
}

const groups: [string, string][] = [['line', 'line'], ['function', 'function'], ['file', 'file'], ['library', 'library']];

// "main.c:12", or the library where no line is known.
export function placeOf(frame: Frame): string {
  if (frame.path && frame.line) return `${base(frame.path)}:${frame.line}`;
  return frame.library ?? '?';
}

function nameOf(frame: Frame, by: string): string {
  if (by === 'library') return frame.library ?? '?';
  if (by === 'file') return frame.path ?? frame.library ?? '?';
  return frame.function;
}

export function Where({ frame }: { frame: Frame }) {
  const place = placeOf(frame);
  return <>{shortened(frame.function)} {frame.function !== `[${place}]` && <span class="quiet">{place}</span>}</>;
}

function order(sort: string): (a: Place, b: Place) => number {
  if (sort === 'name') return (a, b) => a.function.localeCompare(b.function);
  return (a, b) => b[sort as Metric] - a[sort as Metric];
}

export function PlacesView({ shown }: { shown: Shown }) {
  const { state, go } = shown;
  const by = groups.some(([name]) => name === state.kind) ? state.kind : 'line';
  const sort = [...metrics, 'name'].includes(state.sort as Metric) ? state.sort : 'peak';
  const innermost = state.innermost;
  const key = ['places', state.file, by, sort, innermost, state.search, state.from, state.to].join('|');
  const load = async (offset: number, count: number): Promise<Places> => {
    const rows = await ask<Places>('places', { file: state.file, by, innermost, sort, search: state.search, offset, count, ...shown.window });
    if (!offline) return rows;
    const wanted = state.search.toLowerCase();
    const found = rows.rows.filter((row) => [row.function, row.path, row.library].some((text) => text?.toLowerCase().includes(wanted))).sort(order(sort));
    return { ...rows, count: found.length, rows: found.slice(offset, offset + count) };
  };
  const { head, problem, source } = usePages<Place, Places>(key, load);
  if (problem) return <Problem text={problem} />;
  const value = (name: Metric, label: string, hint: string, unit: string): Column<Place> => ({
    key: name, label, hint, numeric: true, sortable: true, text: (row) => row[name],
    title: (row) => exact(row[name], unit), show: (row) => (row[name] ? amount(row[name], unit) : <span class="quiet">0</span>),
  });
  const columns: Column<Place>[] = [
    value('peak', 'At the peak', 'Bytes when the heap was largest', 'bytes'),
    value('total', 'Allocated', 'All bytes', 'bytes'),
    value('count', 'Blocks', 'All blocks', 'blocks'),
    ...(head?.temporary ? [value('temporary', 'Temporary', 'Blocks that the next heap event of their thread freed', 'blocks')] : []),
    value('leaked', 'Not freed', 'Bytes that were not freed', 'bytes'),
    value('left', 'Blocks left', 'Blocks that were not freed', 'blocks'),
    {
      key: 'name', label: 'Where', sortable: true, wide: true, text: (row) => (by === 'line' || by === 'function' ? `${row.function} (${placeOf(row)})` : nameOf(row, by)),
      title: (row) => [row.function, row.path && `${row.path}:${row.line}`, row.library].filter(Boolean).join('\n'),
      show: (row) => (by === 'line' || by === 'function' ? <span class={row.own ? '' : 'foreign'}><Where frame={row} /></span> : nameOf(row, by)),
    },
  ];
  const chosen = selected(source, state.select, (row) => String(row.place));
  return (
    <section>
      <div class="controls">
        <label class="field">
          Sums by
          <select value={by} onChange={(event) => go({ kind: (event.target as HTMLSelectElement).value, select: '' })}>
            {groups.map(([name, text]) => <option key={name} value={name}>{text}</option>)}
          </select>
        </label>
        <Check label="My frames first" value={!innermost} set={(value) => go({ innermost: !value, select: '' })}
          hint="Name each stack by the first frame of your own code. Off: by the function that called the allocator" />
        <Search id="search" value={state.search} label="Search functions, files, libraries" set={(search) => go({ search, select: '' }, true)} />
      </div>
      {head
        ? <Table label="Places" columns={columns} source={source} sort={sort} setSort={(sort) => go({ sort, select: '' })} name="places"
            onRow={(row) => go({ select: String(row.place) })} selected={(row) => row === chosen} />
        : <Waiting />}
      {chosen && !offline && <DetailsOf shown={shown} place={chosen} by={by} />}
    </section>
  );
}

function DetailsOf({ shown, place, by }: { shown: Shown; place: Place; by: string }) {
  const { state } = shown;
  const answer = useAnswer<Details>('place', { file: state.file, by, innermost: state.innermost, place: place.place, ...shown.window });
  if (answer.problem) return <Problem text={answer.problem} />;
  if (!answer.value) return <Waiting />;
  const details = answer.value;
  const most = Math.max(1, ...details.lines.map((line) => line[2]));
  return (
    <div class="box details" data-testid="place">
      <h3 class="of-function" title={details.function}>{details.function}</h3>
      <p class="path quiet">{details.path ? `${details.path}:${details.line}` : details.library}
        {' '}{details.path && details.line > 0 && <EditorLink path={details.path} line={details.line} />} <EditorChoice /></p>
      {details.newer && <p class="notice" role="status">{base(details.path!)} has changed since the file was written: sums may stand beside other lines than they belong to.</p>}
      {details.lines.length > 0 ? (
        <div class="table-scroll" tabIndex={0} role="region" aria-label="Source">
          <table class="source">
            <thead><tr><th scope="col" class="numeric">At the peak</th><th scope="col" class="numeric more">Allocated</th><th scope="col" class="numeric more">Blocks</th><th scope="col" class="numeric">Line</th><th scope="col">Source</th></tr></thead>
            <tbody>
              {details.lines.map(([line, text, peak, , total, count]) => (
                <tr key={line} class={line === details.line ? 'chosen' : ''}>
                  <td class="numeric heat" title={exact(peak, 'bytes')}>{peak > 0 && <span class="heat-bar" aria-hidden="true" style={{ width: `${(100 * peak) / most}%` }} />}<span class="heat-text">{peak ? amount(peak, 'bytes') : ''}</span></td>
                  <td class="numeric more" title={exact(total, 'bytes')}>{total ? amount(total, 'bytes') : ''}</td>
                  <td class="numeric more">{count ? number(count) : ''}</td>
                  <td class="numeric quiet">{line}</td>
                  <td class="code">{text}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : <p class="hint">{details.path ? 'The source is not on this machine, or not under this name.' : 'There are no line numbers for this function: compile with -g.'}</p>}
      <h4>{details.stack_count > details.stacks.length ? `The largest of ${number(details.stack_count)} stacks` : details.stacks.length === 1 ? 'Its stack' : 'Its stacks'}</h4>
      {details.stacks.map((stack, i) => (
        <details key={i} open={i === 0}>
          <summary>{amount(stack.peak, 'bytes')} at the peak, {amount(stack.total, 'bytes')} in {number(stack.count)} blocks ({percent(stack.total, place.total)} of this place)</summary>
          <ol class="frames">
            {stack.frames.map((frame, j) => <li key={j} class={j === stack.at ? 'chosen' : ''} title={[frame.function, frame.path, frame.library].filter(Boolean).join('\n')}><Where frame={frame} /></li>)}
          </ol>
        </details>
      ))}
    </div>
  );
}
