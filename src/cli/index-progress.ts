/** How indexing goes, for people: a line a network that renews itself on a terminal, log lines elsewhere. */
import type { Notice, NoticeLevel } from '../base/notice.ts';
import type { NetworkStatus } from '../ingest/chain/indexer.ts';
import type { TerminalStream } from './context.ts';
import { cellsOf, clipped, counted, fitted, howOld, printable } from './terminal-text.ts';

const BAR_WIDTH = 20;
/** On terminals that are narrower than this, bars are half as long. */
const WIDE_COLUMNS = 110;
const MAX_NAME_WIDTH = 32;
const BAR_EVERY_MS = 200;
const LINE_EVERY_MS = 10_000;

export interface IndexProgress {
  /** Where log lines go: on a terminal they must not run into the bars. */
  readonly logStream: TerminalStream;
  /** From now on the state of these is shown; where there is no terminal, as log lines by `notice`. */
  follow(statuses: () => readonly NetworkStatus[], notice: Notice): void;
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
    const lines = barsOf(statuses(), now(), (stream.columns ?? 80) - 1);
    clear();
    stream.write(lines.map((line) => `${line}\n`).join(''));
    shown = lines.length;
  };
  return {
    logStream: {
      isTTY: true,
      write(text) {
        clear();
        const hasRoom = stream.write(text);
        draw();
        return hasRoom;
      },
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
  let notice: Notice = () => undefined;
  let said = '';
  const say = () => {
    const lines = statuses().map((status) => ({ status, words: wordsOf(status, now()) }));
    const all = lines.map(({ words }) => words).join('\n');
    if (all === said) return;
    said = all;
    for (const { status, words } of lines)
      notice(words, { level: levelOf(status), network: status.network.name });
  };
  return {
    logStream: stream,
    follow(followed, noticed) {
      statuses = followed;
      notice = noticed;
      timer = setInterval(say, LINE_EVERY_MS);
    },
    end() {
      clearInterval(timer);
      say();
    },
  };
}

/** A network that cannot be read is worth a warning each time its state is logged. */
export function levelOf({ worker }: NetworkStatus): NoticeLevel {
  return worker?.problem ? 'warn' : 'info';
}

/** A line a network, in columns, none longer than so many cells. */
function barsOf(statuses: readonly NetworkStatus[], now: number, cells: number): readonly string[] {
  const longest = Math.max(0, ...statuses.map(({ network }) => network.name.length));
  const nameWidth = Math.min(longest, MAX_NAME_WIDTH, Math.floor(cells / 3));
  const barWidth = cells < WIDE_COLUMNS ? BAR_WIDTH / 2 : BAR_WIDTH;
  return statuses.map((status) => {
    const share = shareOf(status);
    const filled = Math.floor((share ?? 0) * barWidth);
    const bar = '█'.repeat(filled) + '░'.repeat(barWidth - filled);
    const start = `${fitted(status.network.name, nameWidth)}  ${bar} ${fitted(percentOf(share), 6, 'right')}  `;
    return start + asManyAsFit(partsOf(status, now), cells - cellsOf(start));
  });
}

/** The parts from the first on, as long as they fit whole; of the first, what fits of its beginning and its end. */
function asManyAsFit(parts: readonly string[], cells: number): string {
  const [first = ''] = parts;
  const head = Math.floor(cells / 3);
  const isLong = cellsOf(first) > cells;
  // Faults begin with who, and end with what.
  let line = isLong ? clipped(`${first.slice(0, head)}…${first.slice(1 + head - cells)}`, cells) : first;
  for (const part of parts.slice(1)) {
    const longer = `${line} · ${part}`;
    if (cellsOf(longer) > cells) break;
    line = longer;
  }
  return line;
}

/** How much of the wanted history has been read, from 0 to 1; undefined while nobody can tell. */
function shareOf({ worker, isTaken }: NetworkStatus): number | undefined {
  if (!worker?.figures || worker.isSearchingRouters || isTaken) return undefined;
  const total = worker.figures.headBlock - (worker.startBlock ?? 0) + 1;
  const unread = worker.owedBlocks + Math.max(0, worker.figures.headBlock - worker.figures.indexedBlock);
  return Math.min(1, Math.max(0, 1 - unread / Math.max(1, total)));
}

/** Cut, not rounded: 100% is only what is all there. */
function percentOf(share: number | undefined): string {
  return share === undefined ? '' : `${(Math.floor(share * 1000) / 10).toFixed(1)}%`;
}

/** One line: how far, what is wrong, how many, how old. */
export function wordsOf(status: NetworkStatus, now: number): string {
  const percent = percentOf(shareOf(status));
  return [...(percent === '' ? [] : [percent]), ...partsOf(status, now)].join(' · ');
}

/** What there is to say of a network, the most important first. */
function partsOf({ worker, isTaken }: NetworkStatus, now: number): readonly string[] {
  if (isTaken) return ['another indexer works on it'];
  const problem = worker?.problem ? [`! ${printable(worker.problem)}`] : [];
  if (!worker?.figures) return problem.length > 0 ? problem : ['asking its routers'];
  const { headBlock, indexedBlock, indexedAt } = worker.figures;
  const behind = headBlock - indexedBlock;
  const toGo = worker.isSearchingRouters
    ? ['reading the history of its routers']
    : worker.owedBlocks > 0
      ? [`${counted(worker.owedBlocks, 'block')} to go`]
      : [];
  return [
    ...problem,
    ...toGo,
    counted(worker.created, 'new message'),
    ...(worker.failedRanges > 0 ? [counted(worker.failedRanges, 'failed range')] : []),
    behind > 0
      ? `${counted(behind, 'block')} behind`
      : `block ${indexedBlock.toLocaleString('en')}, ${howOld(now - indexedAt)}`,
    ...(worker.updated > 0 ? [counted(worker.updated, 'update')] : []),
  ];
}
