// What is shown while a file is read: how far that is and, of a recording, what is known so far.
import type { FileState } from './ask';
import { amount, bytes, exact, number, time } from './format';
import { useWidth } from './parts';

const HEIGHT = 160;

export function Loading({ file }: { file: FileState }) {
  const share = file.size ? Math.floor((100 * file.read) / file.size) : 0;
  return (
    <div class="loading">
      <h2>Reading {file.name}</h2>
      <progress max={file.size || 1} value={file.read} aria-label="Read so far" />
      <p class="quiet" role="status">{bytes(file.read)} of {bytes(file.size)}{file.size ? `, ${share} %` : ''}</p>
      {file.so_far && <SoFar file={file} so={file.so_far} />}
    </div>
  );
}

function SoFar({ file, so }: { file: FileState; so: NonNullable<FileState['so_far']> }) {
  const [outer, width] = useWidth<HTMLDivElement>();
  const most = Math.max(1, so.peak);
  // The run is likely to be as long as what is read of it promises.
  const end = Math.max(so.time, file.read ? (so.time * file.size) / file.read : so.time, 1);
  const x = (time: number) => ((time / end) * width).toFixed(1);
  const path = so.points.map(([time, held]) => `${x(time)},${(HEIGHT - 2 - (held / most) * (HEIGHT - 10)).toFixed(1)}`);
  const facts: [string, string, string][] = [
    ['Run so far', time(so.time), exact(so.time, 'nanoseconds')],
    ['Peak of the heap', amount(so.peak, 'bytes'), exact(so.peak, 'bytes')],
    ['Held now', amount(so.held, 'bytes'), exact(so.held, 'bytes')],
    ['Allocations', number(so.allocations), exact(so.allocations, '')],
  ];
  return (
    <>
      <dl class="facts">{facts.map(([label, shown, all]) => <div key={label}><dt>{label}</dt><dd title={all}>{shown}</dd></div>)}</dl>
      <h3>Heap over time, as far as it is read</h3>
      <div class="spark" ref={outer} role="img" aria-label={`Heap over time, at most ${amount(so.peak, 'bytes')} so far`}>
        {width > 0 && (
          <svg width={width} height={HEIGHT} aria-hidden="true">
            {path.length > 1 && <path class="band-0" d={`M0,${HEIGHT}L${path.join('L')}L${x(so.points[so.points.length - 1][0])},${HEIGHT}Z`} />}
            <line class="peak" x1={x(so.time)} x2={x(so.time)} y1="0" y2={HEIGHT} />
          </svg>
        )}
      </div>
      <p class="hint">This recording has no index: Quern was ended before it could write one, or the file was merged. It is read from its
        beginning once; all views are there when that is done.</p>
    </>
  );
}
