// What the keyboard does, and what a page in a file leaves to quern view.
import { useEffect, useRef } from 'preact/hooks';
import { offline } from './ask';

const keys: [string, string][] = [
  ['?', 'this list'],
  ['[ and ]', 'the view before, the next view'],
  ['/', 'search'],
  ['Tab', 'to the next control'],
  ['Arrow keys', 'move in flame graph, call map, tree and tables'],
  ['Enter', 'zooms in, opens'],
  ['Escape', 'zooms out, closes'],
  ['n and N', 'next and previous match in the flame graph'],
  ['Ctrl+Enter', 'runs an SQL statement'],
  ['Alt+Left', 'what was shown before'],
];

export function Help({ close }: { close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="help" aria-labelledby="help-title" onClose={close}
      onClick={(event) => event.target === dialog.current && dialog.current?.close()}>
      <h2 id="help-title">Keyboard</h2>
      <dl class="lines">{keys.map(([key, does]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{does}</dd></div>)}</dl>
      <p class="hint">What is shown is in the address: copy it to share a view.</p>
      {offline && <Limits />}
      <button type="button" onClick={() => dialog.current?.close()}>Close</button>
    </dialog>
  );
}

// Said where it matters, too; this is the whole of it.
export function Limits() {
  return (
    <div class="limits" data-testid="limits">
      <h3>This page is a file by itself</h3>
      <p>It needs no network and no server, and holds what fits into a file. <code>quern view FILE</code> shows the rest:</p>
      <ul>
        <li>SQL over a recording;</li>
        <li>any part of the run (here: eight equal parts of a recording, the snapshots of a massif.out);</li>
        <li>what is too narrow to be seen before zooming in;</li>
        <li>source and assembly of other than the forty functions that cost most;</li>
        <li>a comparison with other files than those it was written from (<code>quern export A B --as html</code>).</li>
      </ul>
    </div>
  );
}
