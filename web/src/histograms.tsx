// Sizes and lifetimes of blocks, in powers of two.
import { useAnswer } from './ask';
import { amount, exact, number, percent } from './format';
import { Problem, Waiting } from './parts';
import type { Shown } from './shown';
import { listed, Table, type Column } from './table';

interface Bin {
  from: number;
  to: number;
  blocks: number;
  bytes: number;
}

export function Histograms({ shown }: { shown: Shown }) {
  const answer = useAnswer<{ sizes: Bin[]; lifetimes: Bin[] }>('histograms', { file: shown.state.file, ...shown.window });
  if (answer.problem) return <Problem text={answer.problem} />;
  if (!answer.value) return <Waiting what="Reading the recording once more…" />;
  return (
    <section>
      <div class="pair">
        <div><Histogram title="Sizes when allocated" unit="bytes" bins={answer.value.sizes} /></div>
        <div><Histogram title="Lifetimes" unit="nanoseconds" bins={answer.value.lifetimes} /></div>
      </div>
      <p class="hint">A block that was not freed lives to the end of the run. Events closer together than two milliseconds share a time, so shorter lifetimes are not told apart.</p>
    </section>
  );
}

export function Histogram({ title, unit, bins: all }: { title: string; unit: string; bins: Bin[] }) {
  const bins = all.slice(Math.max(0, all.findIndex((bin) => bin.blocks > 0)));
  const total = bins.reduce((sum, bin) => sum + bin.blocks, 0);
  const most = Math.max(1, ...bins.map((bin) => bin.blocks));
  const columns: Column<Bin>[] = [
    {
      key: 'range', label: unit === 'bytes' ? 'Size' : 'Lifetime', full: true, text: (bin) => `${bin.from}-${bin.to - 1}`,
      show: (bin) => bin.from === 0 ? (unit === 'bytes' ? '0 B' : `below ${amount(bin.to, unit)}`) : `${amount(bin.from, unit)} – ${amount(bin.to, unit)}`,
      title: (bin) => `from ${exact(bin.from, unit)}, below ${exact(bin.to, unit)}`,
    },
    { key: 'blocks', label: 'Blocks', numeric: true, text: (bin) => bin.blocks, show: (bin) => number(bin.blocks) },
    {
      key: 'share', label: 'Share', text: (bin) => percent(bin.blocks, total), chart: true,
      show: (bin) => <span class="histogram"><span style={{ width: `${(82 * bin.blocks) / most}%` }} /><em>{percent(bin.blocks, total)}</em></span>,
    },
    { key: 'bytes', label: 'Bytes', numeric: true, text: (bin) => bin.bytes, show: (bin) => amount(bin.bytes, 'bytes'), title: (bin) => exact(bin.bytes, 'bytes') },
  ];
  return (
    <>
      <h3>{title}</h3>
      <Table label={title} columns={columns} source={listed(bins)} name={title.toLowerCase().replace(/ /g, '-')} whole />
    </>
  );
}
