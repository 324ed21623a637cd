/** Progress of long work: a bar on a terminal, otherwise a log line every few seconds. */
import type { TerminalStream } from './context.ts';

export interface Progress {
  advance(amount: number): void;
  /** Text beside the bar. */
  note(text: string): void;
  /** Clears the bar. */
  end(): void;
}

const BAR_WIDTH = 24;
const BAR_INTERVAL_MS = 100;
const LINE_INTERVAL_MS = 5_000;

export interface ProgressOptions {
  /** Default: amounts are bytes. */
  readonly describeAmount?: (amount: number) => string;
  /** Writes a line without a terminal. */
  readonly writeLine?: (line: string) => void;
}

/** @param total null where it is unknown (a pipe) */
export function createProgress(
  stream: TerminalStream,
  title: string,
  total: number | null,
  { describeAmount = megabytes, writeLine = (line) => void stream.write(`${line}\n`) }: ProgressOptions = {},
): Progress {
  let done = 0;
  let note = '';
  let shownAt = performance.now();
  const startedAt = shownAt;

  const describe = () => {
    const seconds = (performance.now() - startedAt) / 1000;
    const amount =
      total === null ? describeAmount(done) : `${Math.floor((done / Math.max(total, 1)) * 100)}%`;
    const speed = `${describeAmount(done / Math.max(seconds, 0.001))}/s`;
    return [amount, note, speed].filter((part) => part !== '').join(' · ');
  };
  const show = () => {
    if (stream.isTTY) {
      const filled = total === null ? 0 : Math.round(Math.min(done / Math.max(total, 1), 1) * BAR_WIDTH);
      const bar = total === null ? '' : `${'█'.repeat(filled)}${'░'.repeat(BAR_WIDTH - filled)} `;
      const line = `${title} ${bar}${describe()}`;
      stream.write(`\r\u001b[K${line.slice(0, (stream.columns ?? 80) - 1)}`);
    } else {
      writeLine(`${title}: ${describe()}`);
    }
  };
  const showWhenDue = () => {
    const now = performance.now();
    if (now - shownAt < (stream.isTTY ? BAR_INTERVAL_MS : LINE_INTERVAL_MS)) return;
    shownAt = now;
    show();
  };
  return {
    advance(amount) {
      done += amount;
      showWhenDue();
    },
    note(text) {
      note = text;
      showWhenDue();
    },
    end() {
      if (stream.isTTY) stream.write('\r\u001b[K');
    },
  };
}

/** A stream for log lines beside a bar: on a terminal they replace the bar, which is drawn again below them. */
export function besideBar(stream: TerminalStream): TerminalStream {
  if (!stream.isTTY) return stream;
  return { isTTY: true, write: (text) => stream.write(`\r\u001b[K${text}`) };
}

function megabytes(bytes: number): string {
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}
