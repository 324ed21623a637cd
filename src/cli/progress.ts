/** Progress of long work: a bar on a terminal, a line every few seconds elsewhere. */
import type { TerminalStream } from './context.ts';

export interface Progress {
  advance(amount: number): void;
  /** Words beside the bar. */
  note(text: string): void;
  /** Clears the bar. */
  end(): void;
}

const BAR_WIDTH = 24;
const BAR_EVERY_MS = 100;
const LINE_EVERY_MS = 5_000;

/** `total` is null where nobody can know it (a pipe). Amounts are bytes, unless `describeAmount` says otherwise. */
export function createProgress(
  stream: TerminalStream,
  title: string,
  total: number | null,
  describeAmount: (amount: number) => string = megabytes,
): Progress {
  let done = 0;
  let words = '';
  let shownAt = performance.now();
  const startedAt = shownAt;

  const describe = () => {
    const seconds = (performance.now() - startedAt) / 1000;
    const amount =
      total === null ? describeAmount(done) : `${Math.floor((done / Math.max(total, 1)) * 100)}%`;
    const speed = `${describeAmount(done / Math.max(seconds, 0.001))}/s`;
    return [amount, words, speed].filter((part) => part !== '').join(' · ');
  };
  const show = () => {
    if (stream.isTTY) {
      const filled = total === null ? 0 : Math.round(Math.min(done / Math.max(total, 1), 1) * BAR_WIDTH);
      const bar = total === null ? '' : `${'█'.repeat(filled)}${'░'.repeat(BAR_WIDTH - filled)} `;
      const line = `${title} ${bar}${describe()}`;
      stream.write(`\r\u001b[K${line.slice(0, (stream.columns ?? 80) - 1)}`);
    } else {
      stream.write(`${title}: ${describe()}\n`);
    }
  };
  const showWhenDue = () => {
    const now = performance.now();
    if (now - shownAt < (stream.isTTY ? BAR_EVERY_MS : LINE_EVERY_MS)) return;
    shownAt = now;
    show();
  };
  return {
    advance(amount) {
      done += amount;
      showWhenDue();
    },
    note(text) {
      words = text;
      showWhenDue();
    },
    end() {
      if (stream.isTTY) stream.write('\r\u001b[K');
    },
  };
}

function megabytes(bytes: number): string {
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}
