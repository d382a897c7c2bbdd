// What the file is, and what matters most in it.
import { offline, useAnswer, type Rows } from './ask';
import { Spark } from './spark';
import { Limits } from './help';
import { amount, described, exact, percent } from './format';
import { Waiting } from './parts';
import { Where, type Places } from './places';
import type { Shown } from './shown';

const kinds: Record<string, string> = {
  recording: 'Heap recording',
  massif: 'Massif heap profile',
  callgrind: 'Callgrind profile',
  cachegrind: 'Cachegrind profile',
  collapsed: 'Collapsed stacks',
  memcheck: 'Memcheck findings',
  dhat: 'DHAT heap profile',
};

export function Overview({ shown }: { shown: Shown }) {
  const { overview, metric, state } = shown;
  // --tool=flame writes stacks that say how they were taken.
  const sampled = overview.kind === 'collapsed' && overview.facts.some((fact) => fact.label === 'profile');
  return (
    <section>
      <h2>{sampled ? 'Sampled profile' : kinds[overview.kind || ''] || 'File'}</h2>
      {overview.command && <p class="command"><code title={overview.command}>{overview.command}</code></p>}
      <dl class="facts">
        {overview.facts.map((fact, i) => (
          <div key={i}>
            <dt>{described(fact.label)}</dt>
            <dd class={typeof fact.value === 'string' && fact.value.length > 12 ? 'words' : ''} title={typeof fact.value === 'number' ? exact(fact.value, fact.unit) : fact.value}
              data-fact={fact.label} data-value={String(fact.value)}>
              {typeof fact.value === 'number' ? amount(fact.value, fact.unit) : fact.value}
            </dd>
          </div>
        ))}
      </dl>
      {overview.views.includes('timeline') && <Spark shown={shown} />}
      {overview.views.includes('places') && !offline ? <TopPlaces shown={shown} /> : metric.name && overview.views.includes('functions') && <Top shown={shown} />}
      {offline && <Limits />}
      {state.from || state.to ? <p class="hint">All numbers are those of the window.</p> : null}
    </section>
  );
}

function Top({ shown }: { shown: Shown }) {
  const { metric, state, go } = shown;
  const answer = useAnswer<Rows>('functions', { file: state.file, metric: metric.name, count: 8, sort: 'self', ...shown.window });
  if (answer.waiting) return <Waiting what="Adding up by function…" />;
  if (!answer.value || !answer.value.rows.length) return null;
  const total = answer.value.total;
  return (
    <>
      <h3>Functions with most: {described(metric.help)}</h3>
      <ol class="top">
        {answer.value.rows.slice(0, 8).filter((row) => row.self > 0).map((row, i) => (
          <li key={i}>
            <button type="button" class="link" title={`${row.name}\n${row.library}`}
              onClick={() => go({ view: 'flame', search: row.name })}>
              <span class="share"><span style={{ width: `${total ? (100 * row.self) / total : 0}%` }} /></span>
              <span class="value">{amount(row.self, metric.unit)} <small>{percent(row.self, total)}</small></span>
              <span class="name">{row.name}</span>
            </button>
          </li>
        ))}
      </ol>
    </>
  );
}

// The lines of the program's own code that allocate most.
function TopPlaces({ shown }: { shown: Shown }) {
  const { metric, state, go } = shown;
  const sort = (['peak', 'total', 'count', 'temporary', 'leaked'] as const).find((name) => name === metric.name) ?? 'peak';
  const unit = sort === 'count' || sort === 'temporary' ? 'blocks' : 'bytes';
  const answer = useAnswer<Places>('places', { file: state.file, sort, count: 8, ...shown.window });
  if (answer.waiting) return <Waiting what="Adding up by line…" />;
  if (!answer.value || !answer.value.rows.length) return null;
  const rows = answer.value.rows.filter((row) => row[sort] > 0);
  const most = Math.max(1, metric.total, ...rows.map((row) => row[sort]));
  return (
    <>
      <h3>Your lines with most: {described(metric.help)}</h3>
      <ol class="top">
        {rows.map((row) => (
          <li key={row.place}>
            <button type="button" class="link" title={`${row.function}\n${row.path ? `${row.path}:${row.line}` : row.library ?? ''}`}
              onClick={() => go({ view: 'places', sort, kind: '', search: '', select: String(row.place) })}>
              <span class="share"><span style={{ width: `${(100 * row[sort]) / most}%` }} /></span>
              <span class="value">{amount(row[sort], unit)} <small>{percent(row[sort], metric.total)}</small></span>
              <span class="name"><Where frame={row} /></span>
            </button>
          </li>
        ))}
      </ol>
    </>
  );
}

export const viewNames: Record<string, string> = {
  overview: 'Overview',
  findings: 'Findings',
  flame: 'Flame graph',
  map: 'Call map',
  tree: 'Top-down / bottom-up',
  functions: 'Functions',
  libraries: 'Libraries',
  threads: 'Threads',
  timeline: 'Timeline',
  histograms: 'Sizes and lifetimes',
  calls: 'Callers and callees',
  source: 'Source',
  assembly: 'Assembly',
  places: 'My lines',
  points: 'Program points',
  diagnosis: 'Diagnosis',
  query: 'SQL',
  diff: 'Compare',
};
