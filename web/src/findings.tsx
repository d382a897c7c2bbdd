// Errors and leaks, each with all its stacks and a suppression that matches it.
import { ask, offline } from './ask';
import { amount, exact, number } from './format';
import { CopyButton, Problem, Search, Waiting } from './parts';
import type { Shown } from './shown';
import { selected, Table, usePages, type Column } from './table';

interface Frame {
  address: string | null;
  function: string | null;
  object: string | null;
  directory: string | null;
  file: string | null;
  line: number;
}

interface Finding {
  index: number;
  kind: string;
  what: string;
  thread: string | null;
  count: number;
  leak: boolean;
  where: number; // the frame of the first section that is the program's own
  bytes: number;
  blocks: number;
  sections: { text: string | null; frames: Frame[] }[];
  suppression: string[];
}

interface Answer {
  kinds: { kind: string; count: number }[];
  rows: Finding[];
  count: number;
}

function place(frame: Frame): string {
  if (frame.file) return `${frame.file}${frame.line ? ':' + frame.line : ''}`;
  return frame.object ? `in ${frame.object}` : '';
}

function first(finding: Finding): string {
  const frame = finding.sections[0]?.frames[finding.where];
  return frame ? `${frame.function || '???'} (${place(frame)})` : '';
}

function asText(finding: Finding): string {
  const lines = [];
  for (const section of finding.sections) {
    if (section.text) lines.push(section.text);
    section.frames.forEach((frame, i) =>
      lines.push(`   ${i ? 'by' : 'at'} ${frame.address || '?'}: ${frame.function || '???'} (${place(frame)})`));
  }
  return lines.join('\n');
}

export function Findings({ shown }: { shown: Shown }) {
  const { state, go } = shown;
  const sort = ['kind', 'what', 'count', 'bytes'].includes(state.sort) ? state.sort : '';
  const key = ['findings', state.file, state.kind, state.search, sort].join('|');
  const load = async (offset: number, count: number): Promise<Answer> => {
    const answer = await ask<Answer>('findings', { file: state.file, kind: state.kind, search: state.search, sort, offset, count });
    if (!offline) return answer;
    const wanted = state.search.toLowerCase();
    const rows = answer.rows.filter((row) => (!state.kind || row.kind === state.kind) && (!wanted || asText(row).toLowerCase().includes(wanted)));
    if (sort) rows.sort((a, b) => (sort === 'kind' || sort === 'what' ? (a[sort] < b[sort] ? -1 : Number(a[sort] > b[sort])) : b[sort as 'count' | 'bytes'] - a[sort as 'count' | 'bytes']));
    return { ...answer, rows: rows.slice(offset, offset + count), count: rows.length };
  };
  const { head, problem, source } = usePages<Finding, Answer>(key, load);
  if (problem) return <Problem text={problem} />;
  if (!head) return <Waiting />;
  const columns: Column<Finding>[] = [
    { key: 'kind', label: 'Kind', sortable: true, text: (row) => row.kind.replace(/^Leak_/, 'Leak: ') },
    { key: 'what', label: 'What', sortable: true, text: (row) => row.what, wide: true },
    { key: 'where', label: 'Where', text: first },
    { key: 'count', label: 'Times', numeric: true, sortable: true, text: (row) => row.count, show: (row) => number(row.count) },
    { key: 'bytes', label: 'Leaked', numeric: true, sortable: true, text: (row) => row.bytes, show: (row) => (row.leak ? amount(row.bytes, 'bytes') : ''), title: (row) => exact(row.bytes, 'bytes') },
  ];
  const chosen = selected(source, state.select, (row) => String(row.index), 5000);
  return (
    <section>
      <div class="controls">
        <label class="field">
          Kind
          <select value={state.kind} onChange={(event) => go({ kind: (event.target as HTMLSelectElement).value, select: '' })}>
            <option value="">all</option>
            {head.kinds.map((one) => <option key={one.kind} value={one.kind}>{one.kind.replace(/^Leak_/, 'Leak: ')} ({one.count})</option>)}
          </select>
        </label>
        <Search id="search" value={state.search} label="Search words and frames" set={(search) => go({ search, select: '' }, true)} />
      </div>
      <Table label="Findings" columns={columns} source={source} name="findings" sort={sort} setSort={(sort) => go({ sort })}
        onRow={(row) => go({ select: String(row.index) })} selected={(row) => row === chosen} />
      {chosen && <Details finding={chosen} />}
    </section>
  );
}

function Details({ finding }: { finding: Finding }) {
  return (
    <article class="finding" aria-label="Finding" data-testid="finding">
      <h3>{finding.what}</h3>
      <p class="quiet">
        {finding.kind}
        {finding.thread ? `, thread ${finding.thread}` : ''}
        {finding.leak ? `, ${exact(finding.bytes, 'bytes')} in ${exact(finding.blocks, 'blocks')}` : finding.count === 1 ? ', once' : `, ${number(finding.count)} times`}
      </p>
      {finding.sections.map((section, i) => (
        <div key={i}>
          {section.text && section.text !== finding.what && <h4 class={/^\s*Held by/.test(section.text) ? 'holder' : ''}>{section.text}</h4>}
          {section.frames.length > 0 && (
            <ol class="stack" aria-label={section.text || 'Stack'}>
              {section.frames.map((frame, j) => (
                <li key={j} title={[frame.address, frame.object, frame.directory && frame.file ? `${frame.directory}/${frame.file}` : ''].filter(Boolean).join('\n')}>
                  <b>{frame.function || '???'}</b> <span class="quiet">{place(frame)}</span>
                </li>
              ))}
            </ol>
          )}
        </div>
      ))}
      <div class="table-tools">
        <CopyButton text={() => finding.suppression.join('\n') + '\n'}>Copy suppression</CopyButton>
        <CopyButton text={() => asText(finding)}>Copy as text</CopyButton>
      </div>
      <details>
        <summary>Suppression</summary>
        <pre class="box" data-testid="suppression" tabIndex={0}>{finding.suppression.join('\n')}</pre>
      </details>
    </article>
  );
}
