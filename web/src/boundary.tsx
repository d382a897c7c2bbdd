// Keeps a fault of one view in that view: what stands around it goes on.
import { Component, type ComponentChildren } from 'preact';
import { forgetAnswers } from './ask';
import { CopyButton } from './parts';

interface Props {
  what: string; // that may fail, as the reader calls it
  where: string; // the address; another one is another try
  main?: boolean; // the page needs a <main> in place of what has failed
  children: ComponentChildren;
}

interface State {
  fault: Error | null;
  where: string; // the address that failed
  tries: number; // each begins anew, without what was kept of the last one
}

export class Boundary extends Component<Props, State> {
  state: State = { fault: null, where: '', tries: 0 };

  // What is thrown while a part is drawn, or by an effect of it, comes here.
  componentDidCatch(thrown: unknown): void {
    const fault = thrown instanceof Error ? thrown : new Error(String(thrown));
    console.error(`${this.props.what} failed:`, fault);
    this.setState({ fault, where: this.props.where });
  }

  componentDidUpdate(): void {
    if (this.state.fault && this.state.where !== this.props.where) this.begin();
  }

  begin(): void {
    this.setState({ fault: null, tries: this.state.tries + 1 });
  }

  render() {
    const { fault, tries } = this.state;
    if (!fault) return <Fresh key={tries}>{this.props.children}</Fresh>;
    const text = `${this.props.what} failed: ${fault.message || fault.name}`;
    const shown = (
      <div class="problem fault" role="alert">
        <strong>{this.props.what} has failed.</strong>
        <p>{fault.message || fault.name}</p>
        <p>This is a fault of the page, not of your program. Other {this.props.main ? 'files' : 'views and files'} still work.</p>
        <div class="table-tools">
          <button type="button" onClick={() => { forgetAnswers(); this.begin(); }}>Reload this {this.props.main ? 'file' : 'view'}</button>
          <CopyButton text={() => [text, location.hash, fault.stack ?? ''].join('\n')}>Copy details</CopyButton>
        </div>
      </div>
    );
    return this.props.main ? <main id="main" tabIndex={-1}>{shown}</main> : shown;
  }
}

function Fresh({ children }: { children: ComponentChildren }) {
  return <>{children}</>;
}
