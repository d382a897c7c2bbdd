// The heap over time. A window that is marked here is what all other views show.
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { offline, useAnswer, windowsOf } from './ask';
import { CallTable } from './calltable';
import { amount, exact, number, time as showTime, shortened } from './format';
import { Check, CopyButton, csv, download, PictureButtons, Problem, useWidth, Waiting } from './parts';
import type { Shown } from './shown';
import { listed, Table, type Column } from './table';

interface Point {
  time: number;
  heap: number;
  most?: number;
  resident?: number;
  extra?: number;
  stacks?: number;
  number?: number;
  kind?: string;
}

interface Mark {
  time: number;
  kind: string;
  name: string;
  heap: number;
  blocks: number;
  thread: number;
}

interface Scope {
  name: string;
  entered: number;
  time: number;
  blocks: number;
  bytes: number;
  freed: number;
}

export interface Timeline {
  unit: string;
  end?: number;
  peak?: number;
  points: Point[];
  marks?: Mark[];
  marks_count?: number;
  scopes?: Scope[];
}

interface Sites {
  end?: number;
  times?: number[]; // of a massif.out: its detailed snapshots
  // `own`: the first frame of the program's own code; `place`: its line.
  sites: { stack: number; peak: number; frames: string[]; own?: number; place?: string }[];
  steps: number[][];
}

const HEIGHT = 360, LEFT = 74, BOTTOM = 32, TOP = 12, RIGHT = 12;

interface Band {
  label: string;
  className: string;
  values: number[]; // by point, stacked
}

export function TimelineView({ shown }: { shown: Shown }) {
  const { state, go, overview } = shown;
  const answer = useAnswer<Timeline>('timeline', { file: state.file });
  const sites = useAnswer<Sites>(state.stacked ? 'sites' : null, { file: state.file });
  if (answer.problem) return <Problem text={answer.problem} />;
  if (!answer.value) return <Waiting />;
  if (!answer.value.points.some((point) => (point.most ?? point.heap) || point.resident || point.stacks))
    return <section><p class="empty" data-testid="empty">There is nothing to show: the file has no memory over time.</p></section>;
  const recording = overview.kind === 'recording';
  const names = [...new Set(answer.value.points.flatMap((point) => Object.keys(point)))];
  const cells = answer.value.points.map((point) => names.map((name) => (point as unknown as Record<string, number | string>)[name] ?? ''));
  return (
    <section aria-label="Timeline">
      <div class="controls">
        <Check label="Stacked by site" value={state.stacked} set={(stacked) => go({ stacked })}
          hint={recording ? 'The stacks that hold most at the peak' : 'The functions that allocate, at the snapshots that have stacks'} />
        {offline ? <WindowChoice shown={shown} unit={answer.value.unit} /> : <WindowFields shown={shown} unit={answer.value.unit} />}
      </div>
      {state.stacked ? (
        sites.problem ? <Problem text={sites.problem} /> :
        sites.value ? <Stacked sites={sites.value} timeline={answer.value} shown={shown} /> :
        <Waiting what="Reading the recording once more…" />
      ) : (
        <Plain timeline={answer.value} shown={shown} />
      )}
      <p class="hint">
        {!offline ? 'Drag over the chart to mark a window: all other views then show that part only, but for those that say otherwise.' :
          windowsOf(state.file).length ? 'Drag over the chart, or choose above: all other views then show the nearest part that this file holds. quern view shows any.' :
          'This file holds the whole run only; quern view shows any part of it.'}
        {overview.kind === 'massif' && ' Snapshots with a large dot have stacks; a click chooses one.'}</p>
      <div class="table-tools">
        <button type="button" onClick={() => download('timeline.csv', csv(names, cells))}>Download CSV</button>
        <CopyButton text={() => [names, ...cells].map((row) => row.join('\t')).join('\n')}>Copy as text</CopyButton>
        <PictureButtons name="timeline" find={() => document.querySelector<SVGSVGElement>('.chart svg')} />
      </div>
      <Marks timeline={answer.value} shown={shown} />
      {overview.kind === 'massif' && <Snapshots timeline={answer.value} shown={shown} />}
    </section>
  );
}

// Seconds where the file counts time so.
function factor(unit: string): number {
  return unit === 'nanoseconds' ? 1e9 : unit === 'ms' ? 1e3 : 1;
}

// Of what was brushed, the part that a page in a file has.
function nearestWindow(file: number, from: number, to: number): { from: number; to: number } | undefined {
  const shared = (one: { from: number; to: number }) => Math.min(one.to, to) - Math.max(one.from, from);
  return [...windowsOf(file)].sort((a, b) => shared(b) - shared(a))[0];
}

const short = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });

function moment(value: number, unit: string): string {
  if (unit === 'nanoseconds' || unit === 'ms') return showTime(unit === 'ms' ? value * 1e6 : value);
  return unit === 'B' ? amount(value, unit) : `${short.format(value)} ${unit === 'i' ? 'instr.' : unit}`;
}

function WindowChoice({ shown, unit }: { shown: Shown; unit: string }) {
  const { state, go, overview } = shown;
  const windows = windowsOf(state.file);
  if (!windows.length) return null;
  return (
    <label class="field">
      Part of the run
      <select value={state.to ? `${state.from || 0}-${state.to}` : ''} onChange={(event) => {
        const [from, to] = (event.target as HTMLSelectElement).value.split('-');
        go({ from: from && from !== '0' ? from : '', to: to || '', node: '' });
      }}>
        <option value="">all of it</option>
        {windows.map((one) => (
          <option key={one.from} value={`${one.from}-${one.to}`}>
            {overview.kind === 'massif' ? `the snapshot at ${moment(one.from, unit)}` : `${moment(one.from, unit)} to ${moment(one.to, unit)}`}
          </option>
        ))}
      </select>
    </label>
  );
}

// A massif.out: all snapshots, and the tree of the one that is chosen beside them.
function Snapshots({ timeline, shown }: { timeline: Timeline; shown: Shown }) {
  const { state, go } = shown;
  const total = (row: Point) => row.heap + (row.extra ?? 0) + (row.stacks ?? 0);
  const bytes = (key: 'heap' | 'extra' | 'stacks', label: string): Column<Point> => ({
    key, label, numeric: true, text: (row) => row[key] ?? 0, show: (row) => amount(row[key] ?? 0, 'bytes'), title: (row) => exact(row[key] ?? 0, 'bytes'),
  });
  const columns: Column<Point>[] = [
    { key: 'number', label: 'Snapshot', numeric: true, text: (row) => row.number ?? '' },
    { key: 'time', label: 'Time', numeric: true, text: (row) => row.time, show: (row) => moment(row.time, timeline.unit), title: (row) => exact(row.time, timeline.unit) },
    { key: 'total', label: 'In all', numeric: true, text: total, show: (row) => amount(total(row), 'bytes'), title: (row) => exact(total(row), 'bytes') },
    bytes('heap', 'Heap'),
    bytes('extra', 'Extra'),
    ...(timeline.points.some((row) => row.stacks) ? [bytes('stacks', 'Stacks')] : []),
    { key: 'kind', label: 'Tree', hint: 'Whether the snapshot has stacks', text: (row) => (row.kind === 'empty' ? '' : row.kind === 'peak' ? 'peak' : 'yes') },
  ];
  // Without stacks of its own, the nearest snapshot that has them is shown.
  const known = timeline.points.filter((row) => row.kind !== 'empty');
  const from = Number(state.from || 0);
  const chosen = state.from ? known.find((row) => row.time >= from && row.time <= Number(state.to || Infinity)) : known.find((row) => row.kind === 'peak');
  return (
    <div class="beside">
      <div>
        <h3>Snapshots</h3>
        <Table label="Snapshots" columns={columns} source={listed(timeline.points)} name="snapshots" selected={(row) => row === chosen}
          onRow={offline ? undefined : (row) => row.kind !== 'empty' && go({ from: String(row.time), to: String(row.time + 1), node: '', open: '' })} />
      </div>
      {known.length > 0 && (
        <div data-testid="snapshot-tree">
          <h3>{chosen ? `Calls at snapshot ${chosen.number}, ${moment(chosen.time, timeline.unit)}` : 'Calls'}</h3>
          <CallTable shown={shown} />
        </div>
      )}
    </div>
  );
}

// What the program has said about itself.
function Marks({ timeline, shown }: { timeline: Timeline; shown: Shown }) {
  const { go } = shown;
  const marks = timeline.marks ?? [], scopes = timeline.scopes ?? [];
  const markColumns: Column<Mark>[] = [
    { key: 'time', label: 'Time', numeric: true, text: (row) => row.time, show: (row) => showTime(row.time), title: (row) => exact(row.time, 'nanoseconds') },
    { key: 'name', label: 'Marker', wide: true, text: (row) => row.name },
    { key: 'kind', label: 'Kind', text: (row) => row.kind },
    { key: 'heap', label: 'Heap', numeric: true, text: (row) => row.heap, show: (row) => amount(row.heap, 'bytes'), title: (row) => exact(row.heap, 'bytes') },
    { key: 'blocks', label: 'Blocks', numeric: true, text: (row) => row.blocks, show: (row) => number(row.blocks) },
    { key: 'thread', label: 'Thread', numeric: true, text: (row) => row.thread },
  ];
  const scopeColumns: Column<Scope>[] = [
    { key: 'name', label: 'Scope', wide: true, text: (row) => row.name },
    { key: 'entered', label: 'Entered', numeric: true, text: (row) => row.entered, show: (row) => number(row.entered) },
    { key: 'time', label: 'Time in it', numeric: true, text: (row) => row.time, show: (row) => showTime(row.time) },
    { key: 'blocks', label: 'Allocations', numeric: true, text: (row) => row.blocks, show: (row) => number(row.blocks) },
    { key: 'bytes', label: 'Allocated', numeric: true, text: (row) => row.bytes, show: (row) => amount(row.bytes, 'bytes'), title: (row) => exact(row.bytes, 'bytes') },
    { key: 'freed', label: 'Freed', numeric: true, text: (row) => row.freed, show: (row) => amount(row.freed, 'bytes'), title: (row) => exact(row.freed, 'bytes') },
  ];
  return (
    <>
      {marks.length > 0 && (
        <>
          <h3>Markers of the program</h3>
          <Table label="Markers" columns={markColumns} source={listed(marks)} name="markers"
            onRow={offline ? undefined : (row) => go({ from: String(row.time), to: '', node: '' })} />
          <p class="hint">{offline ? '' : 'A click shows the run from there on. '}{(timeline.marks_count ?? 0) > marks.length && `${number((timeline.marks_count ?? 0) - marks.length)} more are not shown.`}</p>
        </>
      )}
      {scopes.length > 0 && (
        <>
          <h3>Scopes of the program</h3>
          <Table label="Scopes" columns={scopeColumns} source={listed(scopes)} name="scopes" />
        </>
      )}
    </>
  );
}

// Keeps what is being typed, whatever else comes in meanwhile.
function NumberField({ value, title, set }: { value: string; title: string; set: (text: string) => void }) {
  const [text, type] = useState(value);
  useEffect(() => type(value), [value]);
  return (
    <input type="number" min="0" step="any" value={text} title={title}
      onInput={(event) => type((event.target as HTMLInputElement).value)}
      onChange={(event) => set((event.target as HTMLInputElement).value)} />
  );
}

function WindowFields({ shown, unit }: { shown: Shown; unit: string }) {
  const { state, go } = shown;
  const by = factor(unit), word = by === 1 ? (unit === 'i' ? 'instr.' : unit) : 's';
  const field = (name: 'from' | 'to') => (
    <label class="field">
      {name} ({word})
      <NumberField value={state[name] ? String(Number((Number(state[name]) / by).toFixed(6))) : ''} title={state[name] && exact(Number(state[name]), unit)}
        set={(text) => {
          const value = parseFloat(text);
          go({ [name]: isNaN(value) || value < 0 ? '' : String(Math.round(value * by)), node: '' });
        }} />
    </label>
  );
  return (
    <>
      <span class="range">{field('from')}{field('to')}</span>
      {(state.from || state.to) && (
        <button type="button" onClick={() => go({ from: '', to: '', node: '' })}>The whole run</button>
      )}
    </>
  );
}

function Plain({ timeline, shown }: { timeline: Timeline; shown: Shown }) {
  const points = timeline.points;
  const massif = shown.overview.kind === 'massif';
  const bands: Band[] = massif
    ? [
        { label: 'Heap', className: 'band-0', values: points.map((point) => point.heap) },
        { label: 'Extra', className: 'band-1', values: points.map((point) => point.extra || 0) },
        { label: 'Stacks', className: 'band-2', values: points.map((point) => point.stacks || 0) },
      ].filter((band) => band.values.some((value) => value > 0))
    : [{ label: 'Heap', className: 'band-0', values: points.map((point) => point.most || 0) }];
  const resident = points.filter((point) => point.resident).map((point): [number, number] => [point.time, point.resident!]);
  return (
    <Chart shown={shown} times={points.map((point) => point.time)} bands={bands} unit={timeline.unit} step={massif}
      line={resident} peak={timeline.peak} snapshots={massif ? points : []} marks={timeline.marks ?? []} />
  );
}

// The stack from the program's own code on, with its line.
function ownFirst(site: Sites['sites'][0]): string[] {
  const frames = site.frames.slice(site.own ?? 0).map(shortened);
  return site.place && frames.length ? [`${frames[0]} (${site.place})`, ...frames.slice(1)] : frames;
}

// A stack in one line; recursion is counted.
function line(frames: string[]): string {
  const parts: string[] = [];
  for (let i = 0; i < frames.length; ) {
    let next = i;
    while (next < frames.length && frames[next] === frames[i]) next++;
    parts.push(next - i > 1 ? `${frames[i]} ×${next - i}` : frames[i]);
    i = next;
  }
  return parts.join(' ← ');
}

const FEWER = [1, 3, 5]; // sites that can be chosen instead of all

function Stacked({ sites, timeline, shown }: { sites: Sites; timeline: Timeline; shown: Shown }) {
  const [most, setMost] = useState(0); // bands beside the rest; 0: all that are known
  const times = sites.times ?? sites.steps.map((_, i) => ((sites.end ?? 1) / sites.steps.length) * (i + 1));
  // Stacks that differ only below the program's own code are one band.
  const merged: Band[] = [];
  sites.sites.forEach((site, i) => {
    const label = line(ownFirst(site)), values = sites.steps.map((step) => step[i]);
    const same = merged.find((band) => band.label === label);
    if (same) same.values = same.values.map((value, at) => value + values[at]);
    else merged.push({ label, className: `band-${merged.length}`, values });
  });
  const shownBands = most ? merged.slice(0, most) : merged;
  const rest = sites.steps.map((step, i) => merged.slice(shownBands.length).reduce((sum, band) => sum + band.values[i], step[sites.sites.length]));
  const bands = shownBands.concat([{ label: 'everything else', className: 'band-rest', values: rest }]);
  const choices = FEWER.filter((count) => count < merged.length);
  // Between snapshots that have stacks, and before them, the whole heap is known at least.
  const outline = sites.times ? timeline.points.map((point): [number, number] => [point.time, point.heap]) : [];
  return (
    <>
      {choices.length > 0 && (
        <label class="field small">
          Sites
          <select value={String(most)} onChange={(event) => setMost(Number((event.target as HTMLSelectElement).value))}>
            {choices.map((count) => <option key={count} value={String(count)}>the largest {count === 1 ? 'one' : count}</option>)}
            <option value="0">the largest {merged.length}</option>
          </select>
        </label>
      )}
      <Chart shown={shown} times={times} bands={bands} unit={timeline.unit} peak={timeline.peak} line={outline} lineLabel="The whole heap, at all snapshots" snapshots={[]}
        end={timeline.points[timeline.points.length - 1]?.time} marks={timeline.marks ?? []} />
    </>
  );
}

function ticks(most: number): number[] {
  if (most <= 0) return [0];
  const rough = most / 4;
  const power = Math.pow(2, Math.floor(Math.log2(rough)));
  const list: number[] = [];
  for (let at = 0; at <= most; at += power * (rough / power > 1.5 ? 2 : 1)) list.push(at);
  return list;
}

// Round times, at most so many.
function roundTicks(end: number, most: number, unit: string): number[] {
  const minutes = unit === 'nanoseconds' && end > 60e9;
  const steps = minutes ? [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 86400].map((seconds) => seconds * 1e9) : [];
  let step = steps.find((one) => end / one < most) ?? 0;
  for (let power = Math.pow(10, Math.floor(Math.log10(end / most))); !step; power *= 10)
    step = [1, 2, 5].map((one) => one * power).find((one) => end / one < most) ?? 0;
  const list: number[] = [];
  for (let i = 0; i * step <= end; i++) list.push(i * step);
  return list;
}

// In the order of drawing: what has more to show lies above what is at the same place.
function layered(snapshots: Point[]): { point: Point; i: number }[] {
  const rank = (point: Point) => ['empty', 'detailed', 'peak'].indexOf(point.kind ?? '');
  return snapshots.map((point, i) => ({ point, i })).sort((a, b) => rank(a.point) - rank(b.point));
}

function Chart(props: {
  shown: Shown;
  times: number[];
  bands: Band[];
  unit: string;
  line: [number, number][];
  lineLabel?: string;
  peak?: number;
  snapshots: Point[];
  marks: Mark[];
  step?: boolean;
  end?: number;
}) {
  const { shown, times, bands, unit, line, snapshots, marks } = props;
  const { state, go } = shown;
  const [outer, width] = useWidth<HTMLDivElement>();
  const [hover, setHover] = useState<number | null>(null);
  const [drag, setDrag] = useState<[number, number] | null>(null);
  const [picked, pick] = useState<number | null>(null); // a moment that was clicked
  const start = useRef<number | null>(null);
  const end = Math.max(times[times.length - 1] || 1, props.end || 1);
  const sums = useMemo(() => {
    const rows = [times.map(() => 0)];
    for (const band of bands) rows.push(band.values.map((value, i) => value + rows[rows.length - 1][i]));
    return rows;
  }, [bands, times]);
  const most = 1.05 * Math.max(1, ...sums[sums.length - 1], ...line.map((point) => point[1]));
  const inner = Math.max(50, width - LEFT - RIGHT);
  const x = (time: number) => LEFT + (time / end) * inner;
  const y = (value: number) => TOP + (1 - value / most) * (HEIGHT - TOP - BOTTOM);
  const timeAt = (place: number) => Math.max(0, Math.min(end, ((place - LEFT) / inner) * end));
  const area = (low: number[], high: number[]) => {
    const up = high.map((value, i) => `${x(times[i]).toFixed(1)},${y(value).toFixed(1)}`);
    const down = low.map((value, i) => `${x(times[i]).toFixed(1)},${y(value).toFixed(1)}`).reverse();
    return `M${[...up, ...down].join('L')}Z`;
  };
  const nearest = (time: number) => {
    let low = 0, high = times.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] < time) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  const residentAt = (time: number) => {
    const point = props.lineLabel ? undefined : line.reduce<[number, number] | undefined>((last, one) => (one[0] <= time ? one : last), undefined);
    return point ? `, resident ${amount(point[1], 'bytes')}` : '';
  };
  const place = (event: PointerEvent) => event.clientX - outer.current!.getBoundingClientRect().left;
  const finish = () => {
    if (drag && Math.abs(x(drag[0]) - x(drag[1])) > 4) {
      const [from, to] = [Math.min(...drag), Math.max(...drag)];
      const part = offline ? nearestWindow(state.file, from, to) : { from: Math.floor(from), to: Math.ceil(to) };
      if (part) go({ from: part.from ? String(part.from) : '', to: String(part.to), node: '' });
    } else if (start.current !== null) {
      pick(start.current);
    }
    start.current = null;
    setDrag(null);
  };
  const chooseSnapshot = (point: Point) => go({ from: String(point.time), to: String(point.time + 1), node: '' });
  const marked: [number, number] | null = drag
    ? [Math.min(...drag), Math.max(...drag)]
    : state.from || state.to ? [Number(state.from || 0), Math.min(end, Number(state.to || end))] : null;
  const xTicks = roundTicks(end, width < 500 ? 3 : 7, unit);
  return (
    <>
      <div class="chart" ref={outer}>
        {width > 0 && (
          <svg width={width} height={HEIGHT} role={snapshots.length ? 'group' : 'img'} aria-label={`Memory over time, at most ${amount(most / 1.05, 'bytes')}`}
            onPointerDown={(event) => {
              start.current = timeAt(place(event));
              (event.currentTarget as Element).setPointerCapture(event.pointerId);
            }}
            onPointerMove={(event) => {
              const time = timeAt(place(event));
              setHover(nearest(time));
              if (start.current !== null) setDrag([start.current, time]);
            }}
            onPointerUp={finish} onPointerLeave={() => setHover(null)}>
            {ticks(most).map((value) => (
              <g key={value}>
                <line class="grid" x1={LEFT} x2={width - RIGHT} y1={y(value)} y2={y(value)} />
                <text class="axis" x={LEFT - 6} y={y(value) + 4} text-anchor="end">{amount(value, 'bytes')}</text>
              </g>
            ))}
            {xTicks.map((time, i) => (
              <text class="axis" key={i} x={x(time)} y={HEIGHT - 6} text-anchor={i === 0 ? 'start' : x(time) > width - 40 ? 'end' : 'middle'}>
                {moment(time, unit).replace(/(\.\d*?)0+ s$/, '$1 s').replace('. s', ' s')}
              </text>
            ))}
            {bands.map((band, i) => <path key={i} class={band.className} d={area(sums[i], sums[i + 1])}><title>{band.label}</title></path>)}
            {line.length > 1 && <polyline class="resident" points={line.map((point) => `${x(point[0])},${y(point[1])}`).join(' ')} />}
            {props.peak !== undefined && (
              <g>
                <line class="peak" x1={x(props.peak)} x2={x(props.peak)} y1={TOP} y2={HEIGHT - BOTTOM} />
                <text class="axis" x={x(props.peak) - 4} y={TOP + 10} text-anchor={x(props.peak) > 120 ? 'end' : 'start'}>peak</text>
              </g>
            )}
            {layered(snapshots).map(({ point, i }) => (
              <circle key={i} class={`snapshot ${point.kind}`} cx={x(point.time)} cy={y(sums[sums.length - 1][i])} r={point.kind === 'empty' ? 2 : 5}
                {...(point.kind !== 'empty' && {
                  role: 'button', tabindex: 0, 'aria-label': `snapshot ${point.number}, ${point.kind}`,
                  onPointerDown: (event: Event) => event.stopPropagation(),
                  onClick: () => chooseSnapshot(point),
                  onKeyDown: (event: KeyboardEvent) => event.key === 'Enter' && chooseSnapshot(point),
                })}>
                <title>{`snapshot ${point.number}${point.kind === 'empty' ? '' : ', ' + point.kind}`}</title>
              </circle>
            ))}
            {marks.map((mark, i) => (
              <g key={i} class="mark" data-testid="mark">
                <line x1={x(mark.time)} x2={x(mark.time)} y1={TOP} y2={HEIGHT - BOTTOM} />
                <path d={`M${x(mark.time)},${HEIGHT - BOTTOM}l-5,9h10z`} />
                <title>{`${mark.name} (${mark.kind})\n${showTime(mark.time)}: ${exact(mark.heap, 'bytes')}`}</title>
              </g>
            ))}
            {marked && <rect class="window" x={x(marked[0])} width={Math.max(1, x(marked[1]) - x(marked[0]))} y={TOP} height={HEIGHT - TOP - BOTTOM} />}
            {picked !== null && <line class="cursor" x1={x(picked)} x2={x(picked)} y1={TOP} y2={HEIGHT - BOTTOM} />}
            {hover !== null && <line class="cursor" x1={x(times[hover])} x2={x(times[hover])} y1={TOP} y2={HEIGHT - BOTTOM} />}
          </svg>
        )}
      </div>
      <p class="readout" role="status">
        {hover !== null
          ? `${moment(times[hover], unit)}: ${amount(sums[sums.length - 1][hover], 'bytes')}${residentAt(times[hover])}`
          : marked ? `${moment(marked[0], unit)} to ${moment(marked[1], unit)}` : '\u00a0'}
      </p>
      {picked !== null && shown.overview.kind === 'recording' && !offline && (
        <p class="picked" data-testid="picked">
          <button type="button" onClick={() => go({ view: 'places', from: '', to: String(Math.ceil(picked)), sort: 'leaked', select: '', node: '' })}>
            Show what is alive at {moment(picked, unit)}</button>
        </p>
      )}
      <ul class="legend">
        {[...bands].reverse().map((band) => (
          <li key={band.label}><span class={`swatch ${band.className}`} /> <span class="name" title={band.label}>{band.label}</span>
            {hover !== null && <span class="quiet"> {amount(band.values[hover], 'bytes')}</span>}</li>
        ))}
        {line.length > 1 && <li><span class="swatch resident-swatch" /> {props.lineLabel ?? 'Resident memory of the process'}</li>}
        {marks.length > 0 && <li><span class="swatch mark-swatch" /> Markers of the program</li>}
      </ul>
    </>
  );
}
