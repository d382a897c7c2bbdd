// The timeline in small, on the first page: a click opens it.
import { useAnswer } from './ask';
import { amount } from './format';
import { useWidth } from './parts';
import type { Shown } from './shown';
import type { Timeline } from './timeline';

const HEIGHT = 96;

export function Spark({ shown }: { shown: Shown }) {
  const { state, go } = shown;
  const answer = useAnswer<Timeline>('timeline', { file: state.file });
  const [outer, width] = useWidth<HTMLButtonElement>();
  const points = answer.value?.points ?? [];
  const end = Math.max(1, points[points.length - 1]?.time ?? 1);
  const held = points.map((point) => point.most ?? point.heap + (point.extra ?? 0) + (point.stacks ?? 0));
  const most = Math.max(1, ...held);
  const path = points.map((point, i) => `${((point.time / end) * width).toFixed(1)},${(HEIGHT - 2 - (held[i] / most) * (HEIGHT - 8)).toFixed(1)}`);
  if (answer.value && !held.some((value) => value > 0)) return null;
  const from = Number(state.from || 0), to = Math.min(end, Number(state.to || end));
  return (
    <>
      <h3>Heap over time, at most {amount(most, 'bytes')}</h3>
      <button type="button" class="spark" ref={outer} aria-label="Timeline" title="Opens the timeline" onClick={() => go({ view: 'timeline' })}>
        {width > 0 && (
          <svg width={width} height={HEIGHT} aria-hidden="true">
            {path.length > 1 && <path class="band-0" d={`M0,${HEIGHT}L${path[0].split(',')[0]},${HEIGHT}L${path.join('L')}L${width},${HEIGHT}Z`} />}
            {(state.from || state.to) && <rect class="window" x={(from / end) * width} width={Math.max(1, ((to - from) / end) * width)} y="0" height={HEIGHT} />}
          </svg>
        )}
      </button>
    </>
  );
}
