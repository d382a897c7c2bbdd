// What a view needs to know of the file in front.
import type { FileState, Metric, Overview } from './ask';
import type { Go, State } from './state';

export interface Shown {
  state: State;
  go: Go;
  overview: Overview;
  metric: Metric;
  window: { from?: string; to?: string };
  files: FileState[];
  dark: boolean;
}
