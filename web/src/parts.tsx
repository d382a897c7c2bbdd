// Small parts that views share.
import type { ComponentChildren } from 'preact';
import { CANCELLED, useWorks } from './ask';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

export function Problem({ text }: { text: string }) {
  return (
    <div class="problem" role="alert">
      <strong>{text === CANCELLED ? 'Cancelled.' : 'This cannot be shown.'}</strong>
      <p>{text === CANCELLED ? 'Choose the view again to ask once more.' : text}</p>
    </div>
  );
}

// What is waited for. When that takes long: how far it is, and a button that ends it.
export function Waiting({ what }: { what?: string }) {
  const works = useWorks();
  const work = works[works.length - 1];
  return (
    <div class="waiting" data-testid="waiting">
      <span role="status"><span class="spinner" aria-hidden="true" /> {what || 'One moment…'}</span>
      {work && (
        <span class="work" data-testid="work">
          <progress max={1} value={work.share ?? undefined} aria-label={work.what || 'Waiting for the server'} />
          {work.what && <span>{work.what}{work.share !== null && `, ${Math.floor(100 * work.share)} %`}</span>}
          <button type="button" onClick={() => works.forEach((one) => one.cancel())}>Cancel</button>
        </span>
      )}
    </div>
  );
}

export function Check(props: { label: string; value: boolean; set: (value: boolean) => void; hint?: string }) {
  return (
    <label class="check" title={props.hint}>
      <input type="checkbox" checked={props.value}
        onChange={(event) => props.set((event.target as HTMLInputElement).checked)} />
      {props.label}
    </label>
  );
}

// The width of an element, as it changes.
export function useWidth<T extends HTMLElement>(): [preact.RefObject<T>, number] {
  const ref = useRef<T>(null);
  const [width, set] = useState(0);
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return;
    const measure = () => set(Math.floor(element.clientWidth));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [ref, width];
}

async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const area = document.createElement('textarea');
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand('copy');
    area.remove();
    return done;
  }
}

export function CopyButton({ text, children }: { text: () => string | Promise<string>; children: ComponentChildren }) {
  const [said, say] = useState('');
  useEffect(() => {
    if (!said) return;
    const timer = setTimeout(() => say(''), 1500);
    return () => clearTimeout(timer);
  }, [said]);
  return (
    <button type="button" onClick={async () => say((await copy(await text())) ? 'Copied' : 'Not allowed')}>
      {said || children}
    </button>
  );
}

export function download(name: string, text: string, type = 'text/csv'): void {
  downloadBlob(name, new Blob([text], { type }));
}

function downloadBlob(name: string, blob: Blob): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// What a picture outside of the page needs of the page's style sheet.
const looks = ['fill', 'stroke', 'stroke-width', 'stroke-dasharray', 'opacity', 'fill-opacity', 'font-family', 'font-size', 'text-anchor'];

// A chart as a picture by itself, on the page's background.
function standalone(chart: SVGSVGElement): string {
  const copy = chart.cloneNode(true) as SVGSVGElement;
  const from = chart.querySelectorAll('*'), to = copy.querySelectorAll('*');
  from.forEach((element, i) => {
    const look = getComputedStyle(element);
    for (const name of looks) to[i].setAttribute(name, look.getPropertyValue(name));
    to[i].removeAttribute('class');
    if (element.classList.contains('cursor')) to[i].remove();
  });
  const back = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
  for (const [name, value] of Object.entries({ width: '100%', height: '100%', fill: getComputedStyle(document.body).backgroundColor })) back.setAttribute(name, value);
  copy.prepend(back);
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  return new XMLSerializer().serializeToString(copy);
}

function savePng(chart: SVGSVGElement, name: string): void {
  const image = new Image(), scale = 2;
  image.onload = () => {
    const canvas = document.createElement('canvas');
    canvas.width = scale * chart.clientWidth;
    canvas.height = scale * chart.clientHeight;
    canvas.getContext('2d')!.drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => blob && downloadBlob(name, blob));
  };
  image.src = `data:image/svg+xml,${encodeURIComponent(standalone(chart))}`;
}

// Buttons that save the chart that `find` gives.
export function PictureButtons({ find, name }: { find: () => SVGSVGElement | null | undefined; name: string }) {
  const use = (save: (chart: SVGSVGElement) => void) => () => {
    const chart = find();
    if (chart) save(chart);
  };
  return (
    <>
      <button type="button" onClick={use((chart) => download(`${name}.svg`, standalone(chart), 'image/svg+xml'))}>Save as SVG</button>
      <button type="button" onClick={use((chart) => savePng(chart, `${name}.png`))}>Save as PNG</button>
    </>
  );
}

// RFC 4180; a cell that a spreadsheet would take for a formula is kept from being one.
export function csv(header: string[], rows: (string | number)[][]): string {
  const cell = (value: string | number) => {
    if (typeof value === 'number') return String(value);
    const text = /^[=+\-@\t\r]/.test(value) ? "'" + value : value;
    return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  return [header, ...rows].map((row) => row.map(cell).join(',') + '\r\n').join('');
}

// A text field that tells what was typed once the typing pauses.
export function Search(props: { value: string; set: (value: string) => void; label: string; id?: string }) {
  const [text, type] = useState(props.value);
  useEffect(() => type(props.value), [props.value]);
  useEffect(() => {
    if (text === props.value) return;
    const timer = setTimeout(() => props.set(text), 250);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <input type="search" id={props.id} class="search" aria-label={props.label} placeholder={props.label}
      value={text} spellcheck={false} autocomplete="off"
      onInput={(event) => type((event.target as HTMLInputElement).value)} />
  );
}
