// Numbers, bytes and times as people read them.

const groups = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

// One sign for all: the hyphen is too short beside digits.
function signed(text: string): string {
  return text.replace(/^-/, '−');
}

export function number(value: number): string {
  return signed(groups.format(value));
}

function scaled(value: number, step: number, units: string[]): string {
  let at = 0;
  // What would be rounded to four digits is one of the next unit: 0.98 MiB, not 1005 KiB.
  while (Math.abs(value) >= (step === 1024 ? 999.5 : step) && at + 1 < units.length) {
    value /= step;
    at++;
  }
  const digits = at === 0 ? 0 : Math.abs(value) < 10 ? 2 : Math.abs(value) < 100 ? 1 : 0;
  return signed(`${value.toFixed(digits)} ${units[at]}`.trim());
}

export function bytes(value: number): string {
  return scaled(value, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']);
}

export function time(nanoseconds: number): string {
  if (nanoseconds >= 60e9) {
    const minutes = Math.floor(nanoseconds / 60e9);
    return `${minutes} min ${((nanoseconds - minutes * 60e9) / 1e9).toFixed(0)} s`;
  }
  if (nanoseconds >= 1e9) return `${(nanoseconds / 1e9).toFixed(3)} s`;
  if (nanoseconds >= 1e6) return `${(nanoseconds / 1e6).toFixed(1).replace(/\.0$/, '')} ms`;
  if (nanoseconds >= 1e3) return `${(nanoseconds / 1e3).toFixed(1).replace(/\.0$/, '')} µs`;
  return nanoseconds ? `${nanoseconds} ns` : '0 s';
}

// Short, for axes and cells; the exact number is in the tooltip.
export function amount(value: number, unit: string): string {
  if (unit === 'bytes' || unit === 'B') return bytes(value);
  if (unit === 'nanoseconds') return time(value);
  if (unit === 'ms') return time(value * 1e6);
  if (instructions.includes(unit)) return `${number(value)} instr.`;
  return number(value);
}

// Massif's and DHAT's words for a time that is counted in instructions.
const instructions = ['i', 'instrs'];

export function exact(value: number, unit: string): string {
  if (instructions.includes(unit)) return `${number(value)} instructions`;
  return `${number(value)}${unit ? ' ' + (value === 1 ? unit.replace(/^(byte|block|sample)s$/, '$1') : unit) : ''}`;
}

// What Valgrind's events count; others are known by their name only.
const events: Record<string, string> = {
  Ir: 'instructions', Dr: 'data reads', Dw: 'data writes', I1mr: 'L1 instruction misses', D1mr: 'L1 read misses',
  D1mw: 'L1 write misses', ILmr: 'last-level instruction misses', DLmr: 'last-level read misses', DLmw: 'last-level write misses',
  Bc: 'conditional branches', Bcm: 'mispredicted branches', Bi: 'indirect branches', Bim: 'mispredicted indirect branches',
  Ge: 'global bus events', sysCount: 'system calls', sysTime: 'time in system calls', sysCpuTime: 'CPU time in system calls',
};

export function described(name: string): string {
  return events[name] ? `${events[name]} (${name})` : name;
}

export function change(value: number, unit: string): string {
  return (value > 0 ? '+' : value < 0 ? '−' : '±') + amount(Math.abs(value), unit);
}

// A name with the arguments of its templates left out: `std::vector<…>::push_back`. All of it is in
// the tooltip.
export function shortened(name: string): string {
  if (name.length < 40 || !name.includes('<')) return name;
  let out = '', depth = 0;
  for (let i = 0; i < name.length; i++) {
    const operator = /operator\s*$/.test(name.slice(Math.max(0, i - 10), i)) && depth === 0;
    if (name[i] === '<' && !operator && name[i + 1] !== '<') {
      if (!depth++) out += '<…';
    }
    if (!depth) out += name[i];
    if (name[i] === '>' && depth && name[i - 1] !== '-' && !--depth) out += '>';
  }
  return depth ? name : out;
}

export function percent(part: number, whole: number): string {
  if (!whole) return '–';
  const share = (100 * part) / whole;
  return signed(`${share.toFixed(share !== 0 && Math.abs(share) < 1 ? 2 : 1)} %`);
}
