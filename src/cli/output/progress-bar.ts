/** Progress of long work: a bar on a terminal, otherwise a log line every few seconds. */

import { duration } from '../../text/format.ts';
import type { TerminalStream } from '../context.ts';

const BAR_WIDTH = 24;
const BAR_INTERVAL_MS = 100;
const LINE_INTERVAL_MS = 5_000;
/** An estimate from less than this would jump about. */
const MIN_ESTIMATE_MS = 3_000;

export interface ProgressOptions {
  /** Default: amounts are bytes. */
  readonly describeAmount?: (amount: number) => string;
  /** Writes a line without a terminal. */
  readonly writeLine?: (line: string) => void;
  /** Milliseconds on a monotonic clock. */
  readonly now?: () => number;
}

/** @param total null where it is unknown (a pipe) */
export function createProgress(
  stream: TerminalStream,
  title: string,
  total: number | null,
  options: ProgressOptions = {},
) {
  const {
    describeAmount = (bytes: number) => `${(bytes / 1_000_000).toFixed(1)} MB`,
    writeLine = (line) => void stream.write(`${line}\n`),
    now = () => performance.now(),
  } = options;
  let done = 0;
  let note = '';
  let shownAt = now();
  const startedAt = shownAt;

  const describe = () => {
    const elapsedMs = now() - startedAt;
    const amount =
      total === null ? describeAmount(done) : `${Math.floor((done / Math.max(total, 1)) * 100)}%`;
    const speed = `${describeAmount(done / Math.max(elapsedMs / 1000, 0.001))}/s`;
    return [amount, note, speed, timeLeft(elapsedMs)].filter((part) => part !== '').join(' · ');
  };
  /** Assumes that the rest takes as long as what was done so far. */
  const timeLeft = (elapsedMs: number) => {
    if (total === null || done === 0 || done >= total || elapsedMs < MIN_ESTIMATE_MS) return '';
    return `about ${duration(Math.ceil((elapsedMs * (total - done)) / done / 1000) * 1000)} left`;
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
    const at = now();
    if (at - shownAt < (stream.isTTY ? BAR_INTERVAL_MS : LINE_INTERVAL_MS)) return;
    shownAt = at;
    show();
  };
  return {
    advance(amount: number): void {
      done += amount;
      showWhenDue();
    },
    /** Text beside the bar. */
    note(text: string): void {
      note = text;
      showWhenDue();
    },
    /** Clears the bar. */
    end(): void {
      if (stream.isTTY) stream.write('\r\u001b[K');
    },
  };
}

/** A stream for log lines beside a bar: on a terminal they replace the bar, which is drawn again below them. */
export function besideBar(stream: TerminalStream): TerminalStream {
  if (!stream.isTTY) return stream;
  return { isTTY: true, write: (text) => stream.write(`\r\u001b[K${text}`) };
}
