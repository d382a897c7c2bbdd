// Links that open a source line in the reader's editor, by an address that the editor registers.
import { useState } from 'preact/hooks';

const schemes: Record<string, string> = {
  'VS Code': 'vscode://file{path}:{line}',
  VSCodium: 'vscodium://file{path}:{line}',
  Zed: 'zed://file{path}:{line}',
  CLion: 'jetbrains://clion/navigate/reference?path={path}:{line}',
  Emacs: 'org-protocol://open-file?url={path}&line={line}',
};
const KEY = 'quern-editor';

// What a page must never be sent to is no editor.
function usable(scheme: string): boolean {
  return /^[a-z][a-z0-9+.-]*:/i.test(scheme) && !/^(javascript|data|vbscript|blob|file|https?):/i.test(scheme) && scheme.includes('{path}');
}

function chosen(): string {
  try {
    const scheme = localStorage.getItem(KEY) || '';
    return usable(scheme) ? scheme : '';
  } catch {
    return '';
  }
}

export function EditorLink({ path, line }: { path: string; line: number }) {
  const scheme = chosen();
  if (!scheme || !path.startsWith('/')) return null;
  const address = scheme.replace('{path}', path.split('/').map(encodeURIComponent).join('/')).replace('{line}', String(line));
  return <a href={address}>open in the editor</a>;
}

export function EditorChoice() {
  const [scheme, set] = useState(chosen());
  const choose = (value: string) => {
    try {
      localStorage.setItem(KEY, value);
    } catch {
      // Nothing is kept; the link lasts as long as the page.
    }
    set(value);
    window.dispatchEvent(new HashChangeEvent('hashchange'));
  };
  const other = scheme && !Object.values(schemes).includes(scheme);
  return (
    <label class="field small">
      Editor
      <select value={other ? 'other' : scheme} onChange={(event) => {
        const value = (event.target as HTMLSelectElement).value;
        choose(value === 'other' ? window.prompt('Address with {path} and {line}', scheme || schemes['VS Code']) || '' : value);
      }}>
        <option value="">none</option>
        {Object.entries(schemes).map(([name, value]) => <option key={name} value={value}>{name}</option>)}
        <option value="other">{other ? scheme : 'another…'}</option>
      </select>
    </label>
  );
}
