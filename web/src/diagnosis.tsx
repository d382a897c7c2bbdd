// What is wrong with a program's memory, in plain words.
import { useAnswer } from './ask';
import { CopyButton, Problem, Waiting } from './parts';
import type { Shown } from './shown';

interface Diagnosis {
  word: string;
  title: string;
  certainty: string;
  evidence: string;
  advice: string;
  holder: string;
  place?: string;
  bytes: number;
  frames: string[];
}

export function DiagnosisView({ shown }: { shown: Shown }) {
  const { state, go } = shown;
  const answer = useAnswer<{ rows: Diagnosis[] }>('diagnosis', { file: state.file });
  if (answer.problem) return <Problem text={answer.problem} />;
  if (!answer.value) return <Waiting what="Reading the recording once more…" />;
  return (
    <section>
      <p class="hint">As quern diagnose says it, of the whole run.</p>
      {answer.value.rows.length === 0 && <p>Nothing stands out.</p>}
      {answer.value.rows.map((row, i) => (
        <article class="finding" key={i} aria-label={row.title}>
          <h3>{row.title} <span class="quiet">({row.certainty})</span>{row.place && <>: <code>{row.place}</code></>}</h3>
          <p>{row.evidence}</p>
          {row.frames.length > 0 && (
            <ol class="stack">{row.frames.slice(0, 12).map((frame, j) => <li key={j}>{frame}</li>)}</ol>
          )}
          {row.holder && <p>{row.holder}</p>}
          <p>{row.advice}</p>
          <div class="table-tools">
            <CopyButton text={() => [row.title, row.place ?? '', row.evidence, ...row.frames, row.holder, row.advice].filter((line) => line).join('\n')}>Copy as text</CopyButton>
            {row.frames.length > 0 && (
              <button type="button" onClick={() => go({ view: 'flame', search: row.frames[0] })}>Flame graph</button>
            )}
          </div>
        </article>
      ))}
    </section>
  );
}
