/** How indexing goes, for people: a line a network that renews itself on a terminal, log lines elsewhere. */
import type { NetworkStatus } from '../ingest/evm/indexer.ts';
import type { TerminalStream } from './context.ts';
import { age, clipped, counted, fitted } from './terminal-text.ts';

const BAR_WIDTH = 20;
const NAME_WIDTH = 24;
const BAR_EVERY_MS = 200;
const LINE_EVERY_MS = 10_000;

export interface IndexProgress {
  /** A line of its own, beside the bars. */
  readonly notice: (line: string) => void;
  /** From now on the state of these is shown. */
  follow(statuses: () => readonly NetworkStatus[]): void;
  /** Shows the last state, and stops renewing it. */
  end(): void;
}

export function createIndexProgress(stream: TerminalStream, now: () => number): IndexProgress {
  return stream.isTTY ? createBars(stream, now) : createLines(stream, now);
}

function createBars(stream: TerminalStream, now: () => number): IndexProgress {
  let statuses: () => readonly NetworkStatus[] = () => [];
  let timer: NodeJS.Timeout | undefined;
  let shown = 0;
  const clear = () => {
    // Up to the first of our lines, and away with everything below.
    if (shown > 0) stream.write(`\u001b[${shown}A\u001b[J`);
    shown = 0;
  };
  const draw = () => {
    const lines = statuses().map((status) => clipped(barOf(status, now()), (stream.columns ?? 80) - 1));
    clear();
    stream.write(lines.map((line) => `${line}\n`).join(''));
    shown = lines.length;
  };
  return {
    notice(line) {
      clear();
      stream.write(`${line}\n`);
      draw();
    },
    follow(followed) {
      statuses = followed;
      timer = setInterval(draw, BAR_EVERY_MS);
      draw();
    },
    end() {
      clearInterval(timer);
      draw();
    },
  };
}

function createLines(stream: TerminalStream, now: () => number): IndexProgress {
  let statuses: () => readonly NetworkStatus[] = () => [];
  let timer: NodeJS.Timeout | undefined;
  let said = '';
  const say = () => {
    const lines = statuses()
      .map((status) => `${status.network.name}: ${wordsOf(status, now())}\n`)
      .join('');
    if (lines !== said) stream.write(lines);
    said = lines;
  };
  return {
    notice: (line) => void stream.write(`${line}\n`),
    follow(followed) {
      statuses = followed;
      timer = setInterval(say, LINE_EVERY_MS);
    },
    end() {
      clearInterval(timer);
      say();
    },
  };
}

function barOf(status: NetworkStatus, now: number): string {
  const share = shareOf(status);
  const filled = share === undefined ? 0 : Math.floor(share * BAR_WIDTH);
  const bar = '█'.repeat(filled) + '░'.repeat(BAR_WIDTH - filled);
  return `${fitted(status.network.displayName, NAME_WIDTH)} ${bar} ${wordsOf(status, now)}`;
}

/** How much of the wanted history has been read, from 0 to 1; undefined while nobody can tell. */
export function shareOf({ worker }: NetworkStatus): number | undefined {
  if (!worker?.figures || worker.isSearchingRouters) return undefined;
  const total = worker.figures.headBlock - (worker.startBlock ?? 0) + 1;
  const unread = worker.owedBlocks + Math.max(0, worker.figures.headBlock - worker.figures.indexedBlock);
  return Math.min(1, Math.max(0, 1 - unread / Math.max(1, total)));
}

/** One line: how far, how many, how old, and what is wrong. */
export function wordsOf(status: NetworkStatus, now: number): string {
  const { worker, isOurs } = status;
  if (!worker) return isOurs ? 'starting' : 'waiting: another indexer works on it';
  const share = shareOf(status);
  const parts = [
    worker.isSearchingRouters
      ? 'reading the history of its routers'
      : share === undefined
        ? 'starting'
        : `${(Math.floor(share * 1000) / 10).toFixed(1)}%`,
  ];
  if (worker.owedBlocks > 0 && !worker.isSearchingRouters) {
    parts.push(`${counted(worker.owedBlocks, 'block')} to go`);
  }
  parts.push(counted(worker.created, 'new message'));
  if (worker.updated > 0) parts.push(counted(worker.updated, 'update'));
  if (worker.figures) {
    const { headBlock, indexedBlock, indexedAt } = worker.figures;
    const behind = headBlock - indexedBlock;
    parts.push(
      `block ${indexedBlock.toLocaleString('en')}${behind > 0 ? `, ${counted(behind, 'block')} behind` : ''}` +
        ` (${age(now - indexedAt)} old)`,
    );
  }
  if (worker.failedRanges > 0) parts.push(`${counted(worker.failedRanges, 'failed range')}`);
  if (worker.problem !== null) parts.push(`! ${worker.problem}`);
  return parts.join(' · ');
}
