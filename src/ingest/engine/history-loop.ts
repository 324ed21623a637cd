/**
 * The history loop (backfill): reads what is pending, many pieces at once, and records it in order, from the newest end down.
 *
 * Each range on the backlog is cut into pieces. Pieces are read concurrently and in any order; what was read waits in
 * memory until everything above it in its range has been recorded. So a range on the backlog only ever shrinks from its
 * upper end, and a worker that is killed loses no more than what it had in flight. The number of pieces and of events that
 * wait is bounded. A piece that no endpoint gives goes to the ledger of failures, and reading goes on below it.
 */
import type { PendingRange } from '../../store/ledger/index-ledger.ts';
import { type HistoryReading, historyStep, logProblemsOf, StaleReadingError } from './block-readings.ts';
import type { NetworkReader, NetworkSource } from './family.ts';
import { problemKindOf, reasonOf } from './faults.ts';
import { type ReadMark, runRounds } from './progress.ts';
import { retryDelay } from './timing.ts';

/**
 * Pieces that are read at once: slow start, up to what keeps the endpoints' rate limits busy. The limit begins at one and
 * grows with every piece that succeeds, up to four seconds' worth of requests, for answers may take that long. A failure
 * takes it back to one, and from then on it grows by one with every piece, which doubles it in a round trip.
 */
const QUEUE_SECONDS = 4;
const MIN_PER_ENDPOINT = 2;
const MAX_PER_ENDPOINT = 64;
const MAX_IN_ALL = 256;
/** How much the limit grows with a piece before anything has failed: 1, 5, 25, 125 in three round trips. */
const FIRST_GROWTH = 4;
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

/** What the loop works on, as of the backlog's version that it has seen. A later version always means to plan anew. */
type Phase =
  /** The pending ranges that come first, all of one purpose, are being read. */
  | {
      readonly name: 'reading';
      readonly version: number;
      readonly purpose: PendingRange['purpose'];
      readonly ranges: readonly PendingRange[];
    }
  /** Nothing is pending, or the backlog has not been looked at yet. */
  | { readonly name: 'idle'; readonly version: number | undefined };

/** A run of failures, of any pieces: repeated failures must not wear out an endpoint. */
interface Outage {
  readonly rounds: number;
  readonly reason: string;
  /** On performance.now()'s clock. */
  readonly pausedUntil: number;
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

/**
 * @param source where history begins (null: with the routers), and the rate limit of each endpoint
 * @param isHeadBehind whether there are new blocks that have not been read. They come first.
 */
export function createHistoryLoop(
  reader: NetworkReader,
  source: Pick<NetworkSource, 'start' | 'requestsPerSecond'>,
  isHeadBehind: () => boolean,
) {
  const { progress } = reader;
  const { selector, ledger, head, recorder, problem, timing } = progress;
  const pause = recorder.backlogPause;
  let phase: Phase = { name: 'idle', version: undefined };
  let outage: Outage | null = null;
  /** Down to where each range of the backlog is cut into pieces, by id. */
  const cutDownTo = new Map<string, number>();
  /** In the order in which they were planned: pieces of one range from its upper end down. */
  let pieces: Piece[] = [];
  let inFlight = 0;
  /** A moving average. */
  let itemsPerPiece = 0;
  let headStartUntil = 0;

  const wanted = Math.ceil(source.requestsPerSecond * QUEUE_SECONDS);
  const perEndpoint = Math.min(MAX_PER_ENDPOINT, Math.max(MIN_PER_ENDPOINT, wanted));
  let grownTo = 1;
  let growth = FIRST_GROWTH;
  const concurrency = (): number => {
    const healthy = reader.health().filter((endpoint) => endpoint.healthy).length;
    return Math.min(grownTo, MAX_IN_ALL, perEndpoint * Math.max(1, healthy));
  };

  const isOutdated = (): boolean => phase.version !== recorder.backlogVersion;
  const isHeadFirst = (): boolean => performance.now() < headStartUntil && isHeadBehind();

  // ---- Reading

  const hasRoom = (): boolean => {
    const items = pieces.map(({ state }) => (state.name === 'read' ? state.reading.items : 0));
    const waiting = items.reduce((sum, count) => sum + count, 0);
    return waiting + (inFlight + 1) * itemsPerPiece <= MAX_ITEMS;
  };

  const planNext = (): Piece | undefined => {
    const row = phase.name === 'reading' ? phase.ranges.find((range) => !isCut(range)) : undefined;
    if (!row) return undefined;
    const to = (cutDownTo.get(row.id) ?? row.to + 1) - 1;
    const { from } = reader.nextPiece({ ...row, to });
    cutDownTo.set(row.id, from);
    const piece: Piece = { row, from, to, attempts: 0, state: { name: 'planned' } };
    pieces.push(piece);
    return piece;
  };

  const isCut = (row: PendingRange) => (cutDownTo.get(row.id) ?? row.to + 1) <= row.from;

  /**
   * Starts as many pieces as may be read at once. With one always under way, what waits is recorded sooner or later.
   * Returns the milliseconds after which to call it again: a pause that kept it from starting any. To compute that later
   * would miss a pause that has just ended.
   */
  const startReading = (isGivingWay: boolean, signal: AbortSignal): number => {
    const pauseMs = (outage?.pausedUntil ?? 0) - performance.now();
    if (signal.aborted) return Infinity;
    if (pauseMs > 0) return pauseMs;
    const limit = isGivingWay ? 1 : concurrency();
    while (inFlight < limit && (inFlight === 0 || hasRoom())) {
      const isFull = pieces.length >= WINDOW * limit;
      const piece = pieces.find(({ state }) => state.name === 'planned') ?? (isFull ? undefined : planNext());
      if (!piece) break;
      void read(piece, signal);
    }
    return Infinity;
  };

  const read = async (piece: Piece, signal: AbortSignal): Promise<void> => {
    const mark = recorder.mark();
    const outageBefore = outage;
    const { row, from, to } = piece;
    piece.state = { name: 'reading' };
    inFlight++;
    try {
      const reading = await reader.readHistory({ ...row, from, to }, 'part');
      piece.state = { name: 'read', reading, mark };
      if (reading.from > from) splitOff(piece, reading.from);
      itemsPerPiece = 0.7 * itemsPerPiece + 0.3 * reading.items;
      if (outageBefore === outage) outage = null;
      grownTo = concurrency() + growth;
    } catch (error) {
      // What is under way when the loop ends fails, which means nothing.
      if (!signal.aborted) fail(piece, error, outageBefore);
    } finally {
      inFlight--;
      startReading(isHeadFirst(), signal);
      pause.wake();
    }
  };

  /** The family stopped early: the rest becomes another piece, in its place. */
  const splitOff = (piece: Piece, readFrom: number): void => {
    const rest: Piece = { ...piece, to: readFrom - 1, attempts: 0, state: { name: 'planned' } };
    piece.from = readFrom;
    const place = pieces.indexOf(piece);
    // Its range may have been dropped meanwhile.
    if (place >= 0) pieces.splice(place + 1, 0, rest);
  };

  const fail = (piece: Piece, error: unknown, outageBefore: Outage | null): void => {
    grownTo = 1;
    growth = 1;
    // Where no endpoint answers at all, the failure says nothing about this piece.
    const isAlive = problem.current === null || reader.health().some(({ healthy }) => healthy);
    if (isAlive) piece.attempts++;
    const attempts = problemKindOf(error) === 'unreachable' ? UNREACHABLE_ATTEMPTS : ATTEMPTS;
    const reason = reasonOf(error);
    piece.state = piece.attempts >= attempts ? { name: 'failed', reason } : { name: 'planned' };
    problem.set(error);
    // Many that were under way together and fail together count as one.
    if (outageBefore !== outage) return;
    const rounds = (outage?.rounds ?? 0) + 1;
    outage = { rounds, reason, pausedUntil: performance.now() + retryDelay(rounds, timing) };
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
      // Those below it were read without the contracts registered in it, which the next step knows.
      if (piece.state.reading.contracts.length > 0) break;
    }
    return ready;
  };

  const recordPieces = async (row: PendingRange, ready: readonly PieceRead[]): Promise<void> => {
    const read = ready.map(({ from, to, state: { reading, mark } }) => ({ from, to, reading, mark }));
    try {
      await recorder.record(() => ({
        ...historyStep(row, read, progress, source.start === null),
        done: { id: row.id, from: Math.min(...read.map(({ from }) => from)) },
      }));
    } catch (error) {
      if (!(error instanceof StaleReadingError)) throw error;
      for (const piece of ready as readonly Piece[]) piece.state = { name: 'planned' };
      return;
    }
    pieces = pieces.filter((piece) => !ready.includes(piece as PieceRead));
    for (const { reading } of read) logProblemsOf(reading, progress.log);
  };

  const leaveOut = async (piece: Piece, reason: string): Promise<void> => {
    const { row, from, to } = piece;
    progress.log(`Blocks ${from} to ${to} cannot be read yet: ${reason}`, 'warn');
    await recorder.record(() => {
      // The chain may have turned out to be shorter since it was planned.
      const isThere = to <= (head.tip?.number ?? to);
      return {
        failed: isThere ? [recorder.failureOf({ ...row, from, to }, reason)] : [],
        done: { id: row.id, from },
      };
    });
    pieces = pieces.filter((other) => other !== piece);
  };

  /** Records what is ready at the upper end of any range; false where nothing is. */
  const recordReady = async (): Promise<boolean> => {
    const rows = [...new Map(pieces.map(({ row }) => [row.id, row])).values()];
    for (const row of rows) {
      const first = pieces.find((piece) => piece.row.id === row.id);
      if (first?.state.name === 'failed') await leaveOut(first, first.state.reason);
      else {
        const ready = readyIn(row);
        if (ready.length === 0) continue;
        await recordPieces(row, ready);
      }
      await recorder.publishWhenDue();
      return true;
    }
    return false;
  };

  // ---- The backlog

  /** Takes up the ranges that come first: those of one purpose, for they decide how the others are read. */
  const plan = async (): Promise<Phase> => {
    const version = recorder.backlogVersion;
    const pending = await ledger.pendingRanges(selector);
    const ids = new Set(pending.map(({ id }) => id));
    pieces = pieces.filter(({ row }) => ids.has(row.id));
    for (const id of cutDownTo.keys()) if (!ids.has(id)) cutDownTo.delete(id);
    const [first] = pending;
    if (first?.purpose !== 'routers') await endSearchForRouters();
    if (!first) return { name: 'idle', version };
    const { purpose } = first;
    return { name: 'reading', version, purpose, ranges: pending.filter((row) => row.purpose === purpose) };
  };

  /** A database of an earlier version may not know yet where history begins. */
  const endSearchForRouters = async (): Promise<void> => {
    if (head.startBlock !== null) return;
    const { firstRouterBlock, followedFrom } = await ledger.state(selector);
    await recorder.record(() => ({ startBlock: firstRouterBlock ?? followedFrom ?? 0 }));
  };

  /** Reads and records for a moment. */
  const work = async (signal: AbortSignal): Promise<void> => {
    const isGivingWay = isHeadFirst();
    const pauseMs = startReading(isGivingWay, signal);
    if (isGivingWay) await pause.wait(Math.min(pauseMs, HEAD_POLL_MS), signal);
    else if (!(await recordReady()) && !isOutdated()) await pause.wait(pauseMs, signal);
  };

  const goOn = async (signal: AbortSignal): Promise<void> => {
    if (phase.name !== 'reading' && isOutdated()) headStartUntil = performance.now() + HEAD_START_MS;
    if (isOutdated()) phase = await plan();
    if (phase.name === 'idle') return pause.wait(Infinity, signal);
    if (pieces.length === 0 && phase.ranges.every(isCut)) phase = await plan();
    return work(signal);
  };

  return {
    /** Whether all of history has been read, or is on the ledger of failures. */
    get isEmpty() {
      return phase.name === 'idle' && !isOutdated();
    },
    get isSearchingRouters() {
      return phase.name === 'reading' && phase.purpose === 'routers';
    },
    /** Rounds in a row in which nothing could be read, and why the latest one failed. */
    get failedRounds() {
      return outage?.rounds ?? 0;
    },
    get lastFailure() {
      return outage?.reason ?? null;
    },
    run: (signal: AbortSignal) =>
      runRounds(
        progress,
        signal,
        () => goOn(signal),
        () => 1,
      ),
  };
}
