/**
 * The history loop (backfill): reads what is pending, many pieces at once, and records it in order, from the newest end down.
 *
 * Each range on the backlog is cut into pieces. Pieces are read concurrently and in any order; what was read waits in
 * memory until everything above it in its range has been recorded. So a range on the backlog only ever shrinks from its
 * upper end, and a worker that is killed loses no more than what it had in flight. The number of pieces and of events that
 * wait is bounded. A piece that no endpoint gives goes to the ledger of failures, and reading goes on below it.
 */
import { type IndexLedger, isUnrecoverable, type PendingRange } from '../../store/ledger/index-ledger.ts';
import { createPause, untilLater } from '../work.ts';
import { type Concurrency, createConcurrency } from './concurrency.ts';
import type { HistoryReading, NetworkReader } from './family.ts';
import { problemKindOf, reasonOf } from './faults.ts';
import { historyStep, type ReadPiece, StaleReadingError } from './history-step.ts';
import type { Progress, ReadMark } from './progress.ts';
import { retryDelay, type WorkerTiming } from './timing.ts';

/** How often a piece is tried before it goes to the ledger of failures. */
const ATTEMPTS = 3;
/** The same where an endpoint could not be reached at times, which is seldom the fault of the piece. */
const UNREACHABLE_ATTEMPTS = 10;
/** Pieces that are planned, being read, or waiting to be recorded, for each that may be read at once. */
const WINDOW = 8;
/** Events in memory, as far as can be foreseen: those that wait to be recorded, and those that pieces in flight bring. */
const MAX_ITEMS = 4_000;
/** What one transaction records at most, beyond its first piece. */
const ITEMS_PER_STEP = 2_000;
/**
 * How long history gives way to new blocks at the start, and after a gap was left to it: one piece is read at a time, and
 * nothing is recorded.
 */
const HEAD_START_MS = 10_000;
const HEAD_POLL_MS = 20;

export interface HistoryLoopOptions {
  /** CCIP's number for the network. */
  readonly selector: string;
  readonly ledger: IndexLedger;
  readonly reader: NetworkReader;
  readonly progress: Progress;
  readonly timing: WorkerTiming;
  /** Of each endpoint. */
  readonly requestsPerSecond: number;
  /** Whether history begins with the routers, not at a configured block or time. */
  readonly startsWithRouters: boolean;
  /** Whether there are new blocks that have not been read. They come first. */
  readonly isHeadBehind: () => boolean;
}

export interface HistoryLoop {
  /** Whether all of history has been read, or is on the ledger of failures. */
  readonly isEmpty: boolean;
  readonly isSearchingRouters: boolean;
  /** Rounds in a row in which nothing could be read, and why the latest one failed. */
  readonly failedRounds: number;
  readonly lastFailure: string | null;
  /** Runs until the signal; throws what cannot be retried: a lost lease, or a newer schema. */
  run(signal: AbortSignal): Promise<void>;
}

/** A piece of a range on the backlog. */
interface Piece {
  readonly row: PendingRange;
  readonly to: number;
  /** Moves up where the family stopped early. */
  from: number;
  attempts: number;
  state:
    | { readonly name: 'planned' }
    | { readonly name: 'reading' }
    | { readonly name: 'read'; readonly reading: HistoryReading; readonly mark: ReadMark }
    | { readonly name: 'failed'; readonly reason: string };
}

type PieceRead = Piece & { readonly state: { readonly name: 'read' } };

export function createHistoryLoop(options: HistoryLoopOptions): HistoryLoop {
  const { selector, ledger, reader, progress, timing, startsWithRouters } = options;
  /** The ranges that are worked on now, in their order, and down to where each is cut into pieces. */
  let rows: readonly PendingRange[] = [];
  const cutDownTo = new Map<string, number>();
  /** In the order in which they were planned: pieces of one range from its upper end down. */
  let pieces: Piece[] = [];
  let inFlight = 0;
  let itemsPerPiece = 0;
  /** Failures in a row, of any piece: repeated failures must not wear out an endpoint. */
  let failures = 0;
  let lastFailure: string | null = null;
  let pausedUntil = 0;
  let headStartUntil = 0;
  let isEmpty = false;
  let isSearchingRouters = false;
  let isBacklogChanged = true;
  /** What is under way when the loop ends fails, which means nothing. */
  let isEnded = () => false;
  const pause = createPause();

  const concurrency: Concurrency = createConcurrency({
    requestsPerSecond: options.requestsPerSecond,
    usage: () => {
      const endpoints = reader.health();
      return {
        healthy: endpoints.filter(({ healthy }) => healthy).length,
        requests: endpoints.reduce((sum, { requests }) => sum + requests, 0),
      };
    },
    inFlight: () => inFlight,
    clock: () => performance.now(),
  });

  progress.onPending(() => {
    if (isEmpty) headStartUntil = performance.now() + HEAD_START_MS;
    isBacklogChanged = true;
    isEmpty = false;
    pause.wake();
  });

  const isHeadFirst = (): boolean => performance.now() < headStartUntil && options.isHeadBehind();

  // ---- Reading

  const hasRoom = (): boolean => {
    const waiting = pieces.reduce(
      (sum, { state }) => sum + (state.name === 'read' ? state.reading.items : 0),
      0,
    );
    return waiting + (inFlight + 1) * itemsPerPiece <= MAX_ITEMS;
  };

  const planNext = (): Piece | undefined => {
    for (const row of rows) {
      const to = (cutDownTo.get(row.id) ?? row.to + 1) - 1;
      if (to < row.from) continue;
      const { from } = reader.nextPiece({ ...row, to });
      cutDownTo.set(row.id, from);
      const piece: Piece = { row, from, to, attempts: 0, state: { name: 'planned' } };
      pieces.push(piece);
      return piece;
    }
    return undefined;
  };

  /**
   * Starts as many pieces as may be read at once. With one always under way, what waits is recorded sooner or later.
   * Returns the milliseconds after which to call it again: a pause that kept it from starting any. To compute that later
   * would miss a pause that has just ended.
   */
  const startReading = (isGivingWay: boolean): number => {
    const pauseMs = pausedUntil - performance.now();
    if (isEnded()) return Infinity;
    if (pauseMs > 0) return pauseMs;
    const limit = isGivingWay ? 1 : concurrency.limit;
    while (inFlight < limit && (inFlight === 0 || hasRoom())) {
      const isFull = pieces.length >= WINDOW * limit;
      const piece = pieces.find(({ state }) => state.name === 'planned') ?? (isFull ? undefined : planNext());
      if (!piece) break;
      void read(piece);
    }
    return Infinity;
  };

  const read = async (piece: Piece): Promise<void> => {
    const mark = progress.mark();
    const hadFailures = failures;
    const { row, from, to } = piece;
    piece.state = { name: 'reading' };
    inFlight++;
    try {
      const reading = await reader.readHistory({ ...row, from, to }, 'part');
      piece.state = { name: 'read', reading, mark };
      if (reading.from > from) splitOff(piece, reading.from);
      itemsPerPiece = 0.7 * itemsPerPiece + 0.3 * reading.items;
      if (hadFailures === failures) failures = 0;
      concurrency.succeed();
    } catch (error) {
      if (!isEnded()) fail(piece, error, hadFailures);
    } finally {
      inFlight--;
      startReading(isHeadFirst());
      pause.wake();
    }
  };

  /** The family stopped early: the rest is a piece of its own, in its place. */
  const splitOff = (piece: Piece, readFrom: number): void => {
    const rest: Piece = { ...piece, to: readFrom - 1, attempts: 0, state: { name: 'planned' } };
    piece.from = readFrom;
    const place = pieces.indexOf(piece);
    // Its range may have been dropped meanwhile.
    if (place >= 0) pieces.splice(place + 1, 0, rest);
  };

  const fail = (piece: Piece, error: unknown, hadFailures: number): void => {
    concurrency.fail();
    // Where no endpoint answers at all, the failure says nothing of this piece.
    const isAlive = progress.problem === null || reader.health().some(({ healthy }) => healthy);
    if (isAlive) piece.attempts++;
    const attempts = problemKindOf(error) === 'unreachable' ? UNREACHABLE_ATTEMPTS : ATTEMPTS;
    piece.state =
      piece.attempts >= attempts ? { name: 'failed', reason: reasonOf(error) } : { name: 'planned' };
    progress.setProblem(error);
    // Many that were under way together and fail together count as one.
    if (hadFailures !== failures) return;
    failures++;
    lastFailure = reasonOf(error);
    pausedUntil = performance.now() + retryDelay(failures, timing);
  };

  // ---- Recording

  /** The pieces at the upper end of a range that can be recorded together. */
  const readyIn = (row: PendingRange): readonly PieceRead[] => {
    const ready: PieceRead[] = [];
    let items = 0;
    for (const piece of pieces) {
      if (piece.row.id !== row.id) continue;
      if (piece.state.name !== 'read') break;
      items += piece.state.reading.items;
      if (ready.length > 0 && items > ITEMS_PER_STEP) break;
      ready.push(piece as PieceRead);
      // Those below it were read without the contracts that it names, which the next step knows.
      if (piece.state.reading.contracts.length > 0) break;
    }
    return ready;
  };

  const recordPieces = async (row: PendingRange, ready: readonly PieceRead[]): Promise<void> => {
    const read: readonly ReadPiece[] = ready.map(({ from, to, state }) => ({
      from,
      to,
      reading: state.reading,
      mark: state.mark,
    }));
    try {
      await progress.record(() => ({
        ...historyStep(row, read, progress, startsWithRouters),
        done: { id: row.id, from: Math.min(...read.map(({ from }) => from)) },
      }));
    } catch (error) {
      if (!(error instanceof StaleReadingError)) throw error;
      for (const piece of ready as readonly Piece[]) piece.state = { name: 'planned' };
      return;
    }
    pieces = pieces.filter((piece) => !ready.includes(piece as PieceRead));
    for (const { reading } of read) progress.logRejected(reading);
  };

  const leaveOut = async (piece: Piece, reason: string): Promise<void> => {
    const { row, from, to } = piece;
    progress.log(`Blocks ${from} to ${to} cannot be read yet: ${reason}`, 'warn');
    await progress.record(() => {
      // The chain may have turned out to be shorter since it was planned.
      const isThere = to <= (progress.tip?.number ?? to);
      return {
        failed: isThere ? [progress.failureOf({ ...row, from, to }, reason)] : [],
        done: { id: row.id, from },
      };
    });
    pieces = pieces.filter((other) => other !== piece);
  };

  /** Records what is ready at the upper end of any range; false where nothing is. */
  const recordReady = async (): Promise<boolean> => {
    const begun = [...new Map(pieces.map(({ row }) => [row.id, row])).values()];
    for (const row of begun) {
      const first = pieces.find((piece) => piece.row.id === row.id);
      if (first?.state.name === 'failed') await leaveOut(first, first.state.reason);
      else {
        const ready = readyIn(row);
        if (ready.length === 0) continue;
        await recordPieces(row, ready);
      }
      await progress.publishWhenDue();
      return true;
    }
    return false;
  };

  // ---- The backlog

  /** Takes up the ranges that come first: those of one purpose, for they decide how the others are read. */
  const takeUpBacklog = async (): Promise<void> => {
    isBacklogChanged = false;
    const pending = await ledger.pendingRanges(selector);
    const ids = new Set(pending.map(({ id }) => id));
    pieces = pieces.filter(({ row }) => ids.has(row.id));
    for (const id of cutDownTo.keys()) if (!ids.has(id)) cutDownTo.delete(id);
    const [first] = pending;
    isSearchingRouters = first?.purpose === 'routers';
    if (!isSearchingRouters) await endSearchForRouters();
    rows = pending.filter(({ purpose }) => purpose === first?.purpose);
    // The follow loop may have added ranges since we looked.
    isEmpty = pending.length === 0 && !isBacklogChanged;
  };

  /** A database of an earlier version may not know yet where history begins. */
  const endSearchForRouters = async (): Promise<void> => {
    if (progress.startBlock !== null) return;
    const { firstRouterBlock, followedFrom } = await ledger.state(selector);
    await progress.record(() => ({ startBlock: firstRouterBlock ?? followedFrom ?? 0 }));
    isBacklogChanged = true;
  };

  const isCut = (row: PendingRange) => (cutDownTo.get(row.id) ?? row.to + 1) <= row.from;

  return {
    get isEmpty() {
      return isEmpty;
    },
    get isSearchingRouters() {
      return isSearchingRouters;
    },
    get failedRounds() {
      return failures;
    },
    get lastFailure() {
      return lastFailure;
    },
    async run(signal) {
      isEnded = () => signal.aborted;
      headStartUntil = performance.now() + HEAD_START_MS;
      while (!signal.aborted) {
        try {
          const isFinished = pieces.length === 0 && rows.every(isCut);
          if (isBacklogChanged || (isFinished && !isEmpty)) await takeUpBacklog();
          const isGivingWay = isHeadFirst();
          const pauseMs = startReading(isGivingWay);
          if (isGivingWay) await pause.wait(Math.min(pauseMs, HEAD_POLL_MS), signal);
          else if (!(await recordReady()) && !isBacklogChanged) await pause.wait(pauseMs, signal);
        } catch (error) {
          if (signal.aborted) return;
          if (isUnrecoverable(error)) throw error;
          progress.setProblem(error);
          await untilLater(retryDelay(1, timing), signal);
        }
      }
    },
  };
}
