// Small parts that views share.
import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

export function Problem({ text }: { text: string }) {
  return (
    <div class="problem" role="alert">
      <strong>This cannot be shown.</strong>
      <p>{text}</p>
    </div>
  );
}

export function Waiting({ what }: { what?: string }) {
  return (
    <p class="waiting" role="status">
      <span class="spinner" aria-hidden="true" /> {what || 'One moment…'}
    </p>
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
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
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
