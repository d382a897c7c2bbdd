// Source and machine code beside their costs.
import { useEffect, useRef } from 'preact/hooks';
import { offline, useAnswer } from './ask';
import { base, useCosts, type CostFunction } from './calls';
import { exact, number, percent, shortened } from './format';
import { CopyButton, csv, download, Problem, Waiting } from './parts';
import type { Shown } from './shown';

interface Source extends CostFunction {
  total: number;
  found: boolean;
  newer: boolean;
  lines: [number, number, number, string | null][]; // line, own, in calls, text
  calls: [number, number, string, number, number, number][]; // line, callee, its name, count, cost, recursion
}

// The callees of each line, each once, those that cost most first.
interface Callee {
  function: number;
  name: string;
  count: number;
  cost: number;
  within: boolean;
}

function calleesByLine(calls: Source['calls']): Map<number, Callee[]> {
  const lines = new Map<number, Callee[]>();
  for (const [line, callee, name, count, cost, within] of calls) {
    const list = lines.get(line) || [];
    lines.set(line, list);
    const known = list.find((one) => one.function === callee);
    if (known) {
      known.count += count;
      known.cost += cost;
      known.within ||= within > 0;
    } else list.push({ function: callee, name, count, cost, within: within > 0 });
  }
  for (const list of lines.values()) list.sort((a, b) => b.cost - a.cost);
  return lines;
}

const CALLEES = 6; // shown in a line

function Callees({ list, shown }: { list: Callee[]; shown: Shown }) {
  const { go, metric } = shown;
  return (
    <span class="callees">
      {list.slice(0, CALLEES).map((one) => (
        <button type="button" class="inline" key={one.function} onClick={() => go({ select: String(one.function) })}
          title={`${one.name}: ${number(one.count)} calls, ${one.within ? 'recursion' : exact(one.cost, metric.unit)}`}>
          → {shortened(one.name)} ×{number(one.count)}
        </button>
      ))}
      {list.length > CALLEES && <span class="quiet" title={list.slice(CALLEES).map((one) => one.name).join('\n')}> and {list.length - CALLEES} more</span>}
    </span>
  );
}

// address, own, in calls, text, line, its text, its file if it is another, callee
type Instruction = [string, number, number, string | null, number, string | null, string | null, string | null];

interface Assembly extends CostFunction {
  total: number;
  found: boolean;
  newer: boolean;
  lines: Instruction[];
  jumps: [string, string, number, number][]; // from, to, taken, met (0: unconditional)
}

interface Jump {
  to: string;
  taken: number;
  met: number;
}

// By the address that they leave. Parts of a profile are added up.
function jumpsByAddress(jumps: Assembly['jumps']): Map<string, Jump[]> {
  const all = new Map<string, Jump[]>();
  for (const [from, to, taken, met] of jumps) {
    const list = all.get(from) || [];
    all.set(from, list);
    const known = list.find((one) => one.to === to);
    if (known) {
      known.taken += taken;
      known.met += met;
    } else list.push({ to, taken, met });
  }
  return all;
}

// Where an instruction jumps, how often, and whether that is back or ahead. A click goes there.
function Jumps({ from, list, there }: { from: string; list: Jump[]; there: (address: string) => (() => void) | undefined }) {
  return (
    <span class="callees">
      {list.map((one) => {
        const back = one.to.length < from.length || (one.to.length === from.length && one.to <= from);
        const text = `${back ? '↑' : '↓'} ${one.to} ×${number(one.taken)}${one.met ? ` of ${number(one.met)}` : ''}`;
        const visit = there(one.to);
        const title = `Jumps ${back ? 'back' : 'ahead'} to ${one.to}: ${number(one.taken)} times${one.met ? ` of ${number(one.met)}` : ''}`;
        return visit ? <button type="button" class="inline" key={one.to} title={title} onClick={visit}>{text}</button> : <span class="quiet" key={one.to} title={title}>{text}</span>;
      })}
    </span>
  );
}

function Chooser({ shown, current }: { shown: Shown; current: CostFunction }) {
  const { state, go, overview } = shown;
  const { head } = useCosts({ ...shown, state: { ...state, search: '', sort: 'own' } });
  const other = state.view === 'source' ? 'assembly' : 'source';
  return (
    <div class="controls">
      <label class="field">
        Function
        <select value={String(current.function)} onChange={(event) => go({ select: (event.target as HTMLSelectElement).value })}>
          {!head?.rows.some((row) => row.function === current.function) && <option value={String(current.function)}>{current.name}</option>}
          {head?.rows.map((row) => <option key={row.function} value={String(row.function)}>{row.name} ({percent(row.own, head.total)})</option>)}
        </select>
      </label>
      {overview.views.includes(other) && (
        <button type="button" onClick={() => go({ view: other, select: String(current.function) })}>{other === 'source' ? 'Source' : 'Assembly'}</button>
      )}
      {overview.views.includes('calls') && (
        <button type="button" onClick={() => go({ view: 'calls', select: String(current.function), search: '' })}>Callers and callees</button>
      )}
    </div>
  );
}

function Heading({ of, path, newer }: { of: CostFunction; path: string; newer: boolean }) {
  return (
    <>
      <h2 class="of-function" title={of.name}>{of.name}</h2>
      <p class="path quiet" title={path}>{path}</p>
      {newer && <p class="notice" role="status">{base(path)} has changed since the profile was written: costs may stand beside other lines than they belong to.</p>}
    </>
  );
}

function Cost({ value, total, most, unit }: { value: number; total: number; most: number; unit: string }) {
  if (!value) return <td class="numeric" />;
  return (
    <td class="numeric heat" title={exact(value, unit)}>
      <span class="heat-bar" aria-hidden="true" style={{ width: `${Math.min(100, (100 * value) / most)}%` }} />
      <span class="heat-text">{number(value)} <small>{percent(value, total)}</small></span>
    </td>
  );
}

function tone(value: number, most: number): string {
  return value > most / 3 ? 'hot' : value ? 'warm' : '';
}

function Tools({ name, header, rows }: { name: string; header: string[]; rows: () => (string | number)[][] }) {
  return (
    <div class="table-tools">
      <CopyButton text={() => rows().map((row) => row.join('\t')).join('\n')}>Copy as text</CopyButton>
      <button type="button" onClick={() => download(`${name}.csv`, csv(header, rows()))}>Download CSV</button>
    </div>
  );
}

export function SourceView({ shown }: { shown: Shown }) {
  const { state, metric } = shown;
  const { head } = useCosts({ ...shown, state: { ...state, search: '', sort: 'own' } });
  // A page in a file has sources by path, each once.
  const wanted = offline ? head?.rows.find((row) => (state.select ? String(row.function) === state.select : row.line > 0)) : undefined;
  const answer = useAnswer<Source>(offline && !head ? null : 'source', {
    file: state.file, metric: metric.name, function: state.select, path: wanted?.file,
  });
  const box = useRef<HTMLDivElement>(null);
  const source = answer.value && wanted ? { ...answer.value, ...wanted } : answer.value;
  useEffect(() => {
    const row = source && box.current?.querySelector<HTMLElement>(`[data-line="${source.line}"]`);
    if (row && box.current) box.current.scrollTop = Math.max(0, row.offsetTop - 120);
  }, [source?.function, source?.lines]);
  if (answer.problem) return <><p class="controls">{wanted && <Chooser shown={shown} current={wanted} />}</p><Problem text={answer.problem} /></>;
  if (!source) return <Waiting />;
  const most = Math.max(1, ...source.lines.map((line) => line[1] + line[2]));
  const mostOwn = Math.max(1, ...source.lines.map((line) => line[1]));
  const calls = shown.overview.views.includes('calls');
  const callees = calleesByLine(source.calls ?? []);
  let before = 0;
  return (
    <section>
      <Chooser shown={shown} current={source} />
      <Heading of={source} path={source.file} newer={source.newer} />
      {!source.found && <p class="notice">The source is not on this machine, or not under this name; the costs of its lines are.</p>}
      <div class="table-scroll tall" ref={box} tabIndex={0} role="region" aria-label="Source">
        <table class="source">
          <thead><tr><th scope="col" class="numeric">Self</th>{calls && <th scope="col" class="numeric" title="Inclusive cost of the calls made here">In calls</th>}<th scope="col" class="numeric">Line</th><th scope="col">Source</th></tr></thead>
          <tbody>
            {source.lines.map(([line, own, called, text]) => {
              const gap = before > 0 && line > before + 1;
              before = line;
              return (
                <>
                  {gap && <tr key={`gap${line}`} aria-hidden="true"><td colSpan={4} class="gap">⋯</td></tr>}
                  <tr key={line} data-line={line} class={tone(own + called, most) + (line === source.line ? ' entry' : '')}>
                    <Cost value={own} total={source.total} most={mostOwn} unit={metric.unit} />
                    {calls && <td class="numeric" title={called ? exact(called, metric.unit) : ''}>{called ? number(called) : ''}</td>}
                    <td class="numeric quiet">{line}</td>
                    <td class="code"><span class="text">{text ?? ''}</span>{callees.has(line) && <Callees list={callees.get(line)!} shown={shown} />}</td>
                  </tr>
                </>
              );
            })}
          </tbody>
        </table>
        {source.lines.length === 0 && <p class="empty">The profile has no lines of this file{source.file === '???' ? ': the program has no debug information for it' : ''}.</p>}
      </div>
      <Tools name="source" header={['line', 'own', 'called', 'source']} rows={() => source.lines.map(([line, own, called, text]) => [line, own, called, text ?? ''])} />
    </section>
  );
}

export function AssemblyView({ shown }: { shown: Shown }) {
  const { state, go, metric } = shown;
  const { head } = useCosts({ ...shown, state: { ...state, search: '', sort: 'own' } });
  const box = useRef<HTMLDivElement>(null);
  const chosen = state.select || (offline && head?.rows[0] ? String(head.rows[0].function) : '');
  const answer = useAnswer<Assembly>(offline && !chosen ? null : 'assembly', { file: state.file, metric: metric.name, function: chosen });
  if (answer.problem) {
    const row = head?.rows.find((one) => String(one.function) === chosen);
    return <>{row && <Chooser shown={shown} current={row} />}<Problem text={answer.problem} /></>;
  }
  if (!answer.value) return <Waiting />;
  const code = answer.value;
  const most = Math.max(1, ...code.lines.map((line) => line[1] + line[2]));
  const mostOwn = Math.max(1, ...code.lines.map((line) => line[1]));
  const jumps = jumpsByAddress(code.jumps ?? []);
  const there = (address: string) => {
    if (!code.lines.some((line) => line[0] === address)) return undefined;
    return () => {
      const row = box.current?.querySelector<HTMLElement>(`[data-address="${address}"]`);
      row?.scrollIntoView({ block: 'center' });
      row?.focus();
    };
  };
  const callee = (name: string) => head?.rows.find((row) => row.name === name);
  let line = 0, before = '';
  return (
    <section>
      <Chooser shown={shown} current={code} />
      <Heading of={code} path={code.object} newer={code.newer} />
      {!code.found && <p class="notice">The program or library is not on this machine, or is none; the costs of its addresses are.</p>}
      <div class="table-scroll tall" ref={box} tabIndex={0} role="region" aria-label="Assembly">
        <table class="source assembly">
          <thead><tr><th scope="col" class="numeric">Self</th><th scope="col" class="numeric" title="Inclusive cost of the calls made here">In calls</th><th scope="col">Address</th><th scope="col">Instruction</th></tr></thead>
          <tbody>
            {code.lines.map(([address, own, called, text, at, written, file, calls]) => {
              const begins = at > 0 && (at !== line || (file ?? '') !== before);
              if (begins) [line, before] = [at, file ?? ''];
              const target = calls ? callee(calls) : undefined;
              return (
                <>
                  {begins && (
                    <tr key={`line${address}`} class="line-head">
                      <td colSpan={2} />
                      <td class="quiet" title={file ?? code.file}>{file ? `${base(file)}:` : 'line '}{at}</td>
                      <td class="code quiet">{written?.trim()}</td>
                    </tr>
                  )}
                  <tr key={address} data-address={address} tabIndex={-1} class={tone(own + called, most)}>
                    <Cost value={own} total={code.total} most={mostOwn} unit={metric.unit} />
                    <td class="numeric" title={called ? exact(called, metric.unit) : ''}>{called ? number(called) : ''}</td>
                    <td class="quiet code">{address}</td>
                    <td class="code">
                      {text ?? ''}
                      {calls && (target
                        ? <button type="button" class="inline" title={`Assembly of ${calls}`} onClick={() => go({ select: String(target.function) })}>{calls}</button>
                        : <span class="quiet"> {calls}</span>)}
                      {jumps.has(address) && <Jumps from={address} list={jumps.get(address)!} there={there} />}
                    </td>
                  </tr>
                </>
              );
            })}
          </tbody>
        </table>
        {code.lines.length === 0 && <p class="empty">The profile has no instructions of this function.</p>}
      </div>
      <Tools name="assembly" header={['address', 'own', 'called', 'instruction', 'line', 'callee']}
        rows={() => code.lines.map(([address, own, called, text, at, , , calls]) => [address, own, called, text ?? '', at, calls ?? ''])} />
    </section>
  );
}
