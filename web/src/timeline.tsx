// The heap over time. A window that is marked here is what all other views show.
import { useMemo, useRef, useState } from 'preact/hooks';
import { useAnswer } from './ask';
import { amount, exact, time as showTime } from './format';
import { Check, Problem, useWidth, Waiting } from './parts';
import type { Shown } from './shown';

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

interface Timeline {
  unit: string;
  end?: number;
  peak?: number;
  points: Point[];
}

interface Sites {
  end: number;
  sites: { stack: number; peak: number; frames: string[] }[];
  steps: number[][];
}

const HEIGHT = 320, LEFT = 74, BOTTOM = 28, TOP = 12, RIGHT = 12;

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
  const recording = overview.kind === 'recording';
  return (
    <section aria-label="Timeline">
      <div class="controls">
        {recording && (
          <Check label="Stacked by site" hint="The stacks that hold most at the peak" value={state.stacked}
            set={(stacked) => go({ stacked })} />
        )}
        <WindowFields shown={shown} unit={answer.value.unit} />
      </div>
      {state.stacked && recording ? (
        sites.problem ? <Problem text={sites.problem} /> :
        sites.value ? <Stacked sites={sites.value} timeline={answer.value} shown={shown} /> :
        <Waiting what="Reading the recording once more…" />
      ) : (
        <Plain timeline={answer.value} shown={shown} />
      )}
      <p class="hint">Drag to mark a window: everything else then shows that part.
        {overview.kind === 'massif' && ' Snapshots with a large dot have stacks; a click chooses one.'}</p>
    </section>
  );
}

// Seconds where the file counts time so.
function factor(unit: string): number {
  return unit === 'nanoseconds' ? 1e9 : unit === 'ms' ? 1e3 : 1;
}

function WindowFields({ shown, unit }: { shown: Shown; unit: string }) {
  const { state, go } = shown;
  const by = factor(unit), word = by === 1 ? unit : 's';
  const field = (name: 'from' | 'to') => (
    <label class="field">
      {name} ({word})
      <input type="number" min="0" step="any" value={state[name] ? Number(state[name]) / by : ''}
        onChange={(event) => {
          const value = parseFloat((event.target as HTMLInputElement).value);
          go({ [name]: isNaN(value) || value < 0 ? '' : String(Math.round(value * by)), node: '' });
        }} />
    </label>
  );
  return (
    <>
      {field('from')}
      {field('to')}
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
      line={resident} peak={timeline.peak} snapshots={massif ? points : []} />
  );
}

// A stack in one line; recursion is counted.
function short(frames: string[]): string {
  const parts: string[] = [];
  for (let i = 0; i < frames.length; ) {
    let next = i;
    while (next < frames.length && frames[next] === frames[i]) next++;
    parts.push(next - i > 1 ? `${frames[i]} ×${next - i}` : frames[i]);
    i = next;
  }
  return parts.join(' ← ');
}

function Stacked({ sites, timeline, shown }: { sites: Sites; timeline: Timeline; shown: Shown }) {
  const times = sites.steps.map((_, i) => (sites.end / sites.steps.length) * (i + 1));
  const bands = sites.sites
    .map((site, i): Band => ({
      label: short(site.frames), className: `band-${i}`,
      values: sites.steps.map((step) => step[i]),
    }))
    .concat([{ label: 'everything else', className: 'band-rest', values: sites.steps.map((step) => step[sites.sites.length]) }]);
  return <Chart shown={shown} times={times} bands={bands} unit={timeline.unit} peak={timeline.peak} line={[]} snapshots={[]} />;
}

function ticks(most: number): number[] {
  if (most <= 0) return [0];
  const rough = most / 4;
  const power = Math.pow(2, Math.floor(Math.log2(rough)));
  const list: number[] = [];
  for (let at = 0; at <= most; at += power * (rough / power > 1.5 ? 2 : 1)) list.push(at);
  return list;
}

function Chart(props: {
  shown: Shown;
  times: number[];
  bands: Band[];
  unit: string;
  line: [number, number][];
  peak?: number;
  snapshots: Point[];
  step?: boolean;
}) {
  const { shown, times, bands, unit, line, snapshots } = props;
  const { state, go } = shown;
  const [outer, width] = useWidth<HTMLDivElement>();
  const [hover, setHover] = useState<number | null>(null);
  const [drag, setDrag] = useState<[number, number] | null>(null);
  const start = useRef<number | null>(null);
  const end = Math.max(times[times.length - 1] || 1, 1);
  const sums = useMemo(() => {
    const rows = [times.map(() => 0)];
    for (const band of bands) rows.push(band.values.map((value, i) => value + rows[rows.length - 1][i]));
    return rows;
  }, [bands, times]);
  const most = Math.max(1, ...sums[sums.length - 1], ...line.map((point) => point[1]));
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
  const place = (event: PointerEvent) => event.clientX - outer.current!.getBoundingClientRect().left;
  const finish = () => {
    if (drag && Math.abs(x(drag[0]) - x(drag[1])) > 4) {
      const [from, to] = [Math.min(...drag), Math.max(...drag)];
      go({ from: String(Math.floor(from)), to: String(Math.ceil(to)), node: '' });
    }
    start.current = null;
    setDrag(null);
  };
  const marked: [number, number] | null = drag
    ? [Math.min(...drag), Math.max(...drag)]
    : state.from || state.to ? [Number(state.from || 0), Math.min(end, Number(state.to || end))] : null;
  const xTicks = Array.from({ length: width < 500 ? 4 : 7 }, (_, i) => (end / (width < 500 ? 3 : 6)) * i);
  return (
    <>
      <div class="chart" ref={outer}>
        {width > 0 && (
          <svg width={width} height={HEIGHT} role="img" aria-label={`Memory over time, at most ${amount(most, 'bytes')}`}
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
              <text class="axis" key={i} x={x(time)} y={HEIGHT - 8} text-anchor={i === 0 ? 'start' : i === xTicks.length - 1 ? 'end' : 'middle'}>
                {unit === 'nanoseconds' || unit === 'ms' ? showTime(time * (unit === 'ms' ? 1e6 : 1)) : amount(Math.round(time), unit)}
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
            {snapshots.map((point, i) => (
              <circle key={i} class={`snapshot ${point.kind}`} cx={x(point.time)} cy={y(sums[sums.length - 1][i])} r={point.kind === 'empty' ? 2 : 5}
                onPointerDown={(event) => point.kind !== 'empty' && event.stopPropagation()}
                onClick={() => point.kind !== 'empty' && go({ from: String(point.time), to: String(point.time + 1), node: '' })}>
                <title>{`snapshot ${point.number}${point.kind === 'empty' ? '' : ', ' + point.kind}`}</title>
              </circle>
            ))}
            {marked && <rect class="window" x={x(marked[0])} width={Math.max(1, x(marked[1]) - x(marked[0]))} y={TOP} height={HEIGHT - TOP - BOTTOM} />}
            {hover !== null && <line class="cursor" x1={x(times[hover])} x2={x(times[hover])} y1={TOP} y2={HEIGHT - BOTTOM} />}
          </svg>
        )}
      </div>
      <p class="readout" role="status">
        {hover !== null
          ? `${unit === 'nanoseconds' ? showTime(times[hover]) : exact(times[hover], unit)}: ${amount(sums[sums.length - 1][hover], 'bytes')}`
          : ' '}
      </p>
      <ul class="legend">
        {[...bands].reverse().map((band) => (
          <li key={band.label}><span class={`swatch ${band.className}`} /> <span class="name" title={band.label}>{band.label}</span>
            {hover !== null && <span class="quiet"> {amount(band.values[hover], 'bytes')}</span>}</li>
        ))}
        {line.length > 1 && <li><span class="swatch resident-swatch" /> Resident memory of the process</li>}
      </ul>
    </>
  );
}
