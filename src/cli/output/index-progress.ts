/** Progress of indexing: one bar for each network on a terminal, log lines elsewhere. */
import type { LogLineLevel, WriteLog } from '../../base/log.ts';
import { blockNoun } from '../../domain/chain-families.ts';
import type { NetworkStatus } from '../../ingest/engine/indexer.ts';
import { counted, howOld, printable } from '../../text/format.ts';
import type { TerminalStream } from '../context.ts';
import { cellsOf, clipped, fitted } from './terminal-text.ts';

const BAR_WIDTH = 20;
/** On terminals that are narrower than this, bars are half as long. */
const WIDE_COLUMNS = 110;
const MAX_NAME_WIDTH = 32;
const BAR_INTERVAL_MS = 200;
const LINE_INTERVAL_MS = 10_000;

/** On a terminal the bars are redrawn; elsewhere changes are logged through `writeLog`. */
export function createIndexProgress(stream: TerminalStream, now: () => number) {
  let statuses: () => readonly NetworkStatus[] = () => [];
  let writeLog: WriteLog = () => undefined;
  let timer: NodeJS.Timeout | undefined;
  let shownBars = 0;
  let logged = '';
  const clear = () => {
    // Cursor up to the first bar, then erase to the end of the screen.
    if (shownBars > 0) stream.write(`\u001b[${shownBars}A\u001b[J`);
    shownBars = 0;
  };
  const draw = () => {
    const lines = barsOf(statuses(), now(), (stream.columns ?? 80) - 1);
    clear();
    stream.write(lines.map((line) => `${line}\n`).join(''));
    shownBars = lines.length;
  };
  const logChanges = () => {
    const lines = statuses().map((status) => ({ status, text: describeStatus(status, now()) }));
    const all = lines.map(({ text }) => text).join('\n');
    if (all === logged) return;
    logged = all;
    for (const { status, text } of lines)
      writeLog(text, { level: levelOf(status), network: status.network.name });
  };
  const barStream: TerminalStream = {
    isTTY: true,
    write(text) {
      clear();
      const hasRoom = stream.write(text);
      draw();
      return hasRoom;
    },
  };
  return {
    /** The stream for log lines, which on a terminal must not overwrite the bars. */
    logStream: stream.isTTY ? barStream : stream,
    follow(read: () => readonly NetworkStatus[], write: WriteLog): void {
      statuses = read;
      writeLog = write;
      timer = stream.isTTY ? setInterval(draw, BAR_INTERVAL_MS) : setInterval(logChanges, LINE_INTERVAL_MS);
      if (stream.isTTY) draw();
    },
    end(): void {
      clearInterval(timer);
      (stream.isTTY ? draw : logChanges)();
    },
  };
}

/** A network with a problem is logged as a warning. */
export function levelOf({ worker }: NetworkStatus): LogLineLevel {
  return worker?.problem ? 'warn' : 'info';
}

/** One line for each network, in columns, at most this many cells wide. */
function barsOf(statuses: readonly NetworkStatus[], now: number, cells: number): readonly string[] {
  const longest = Math.max(0, ...statuses.map(({ network }) => network.name.length));
  const nameWidth = Math.min(longest, MAX_NAME_WIDTH, Math.floor(cells / 3));
  const barWidth = cells < WIDE_COLUMNS ? BAR_WIDTH / 2 : BAR_WIDTH;
  return statuses.map((status) => {
    const share = shareOf(status);
    const filled = Math.floor((share ?? 0) * barWidth);
    const bar = '█'.repeat(filled) + '░'.repeat(barWidth - filled);
    const start = `${fitted(status.network.name, nameWidth)}  ${bar} ${fitted(percentOf(share), 6, 'right')}  `;
    return start + joinFitting(partsOf(status, now), cells - cellsOf(start));
  });
}

/** As many parts as fit. If the first is too long, its beginning and its end. */
function joinFitting(parts: readonly string[], cells: number): string {
  const [first = ''] = parts;
  const head = Math.floor(cells / 3);
  const isLong = cellsOf(first) > cells;
  // A problem begins with the endpoint and ends with the reason.
  let line = isLong ? clipped(`${first.slice(0, head)}…${first.slice(1 + head - cells)}`, cells) : first;
  for (const part of parts.slice(1)) {
    const longer = `${line} · ${part}`;
    if (cellsOf(longer) > cells) break;
    line = longer;
  }
  return line;
}

/** The share of the configured history that has been read, from 0 to 1; undefined while unknown. */
function shareOf({ worker, isTaken }: NetworkStatus): number | undefined {
  if (!worker?.head || worker.isSearchingRouters || isTaken) return undefined;
  const total = worker.head.headBlock - (worker.startBlock ?? 0) + 1;
  const unread = worker.owedBlocks + Math.max(0, worker.head.headBlock - worker.head.indexedBlock);
  return Math.min(1, Math.max(0, 1 - unread / Math.max(1, total)));
}

/** Rounded down: 100% means complete. */
function percentOf(share: number | undefined): string {
  return share === undefined ? '' : `${(Math.floor(share * 1000) / 10).toFixed(1)}%`;
}

/** One line: share, problem, counts, age. */
export function describeStatus(status: NetworkStatus, now: number): string {
  const percent = percentOf(shareOf(status));
  return [...(percent === '' ? [] : [percent]), ...partsOf(status, now)].join(' · ');
}

/** The parts of the line, the most important first. */
function partsOf({ network, worker, isTaken }: NetworkStatus, now: number): readonly string[] {
  if (isTaken) return ['another indexer works on it'];
  const problem = worker?.problem ? [`! ${printable(worker.problem)}`] : [];
  if (!worker?.head) return problem.length > 0 ? problem : ['reading its routers'];
  const { headBlock, indexedBlock, indexedAt } = worker.head;
  const noun = blockNoun(network.family);
  const behind = headBlock - indexedBlock;
  const toGo = worker.isSearchingRouters
    ? ['reading the history of its routers']
    : worker.owedBlocks > 0
      ? [`${counted(worker.owedBlocks, noun)} to go`]
      : [];
  return [
    ...problem,
    ...toGo,
    counted(worker.created, 'new message'),
    ...(worker.failedRanges > 0 ? [counted(worker.failedRanges, 'failed range')] : []),
    behind > 0
      ? `${counted(behind, noun)} behind`
      : `${noun} ${indexedBlock.toLocaleString('en')}, ${howOld(now - indexedAt)}`,
    ...(worker.updated > 0 ? [counted(worker.updated, 'update')] : []),
  ];
}
