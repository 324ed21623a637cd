/**
 * The history loop (backfill): reads what is owed, from the newest end down, and retries the ledger of failures.
 *
 * A piece that no endpoint gives goes to the ledger, and reading goes on below it.
 */
import type { Fact } from '../../domain/facts.ts';
import {
  type BlockRange,
  type FailedRange,
  type IndexLedger,
  type IndexStep,
  isUnrecoverable,
  type OwedRange,
} from '../../store/ledger/index-ledger.ts';
import { untilLater } from '../work.ts';
import { type HistoryReading, type NetworkReader, stepOf } from './family.ts';
import { NodeFault, RangeTooLarge, reasonOf } from './faults.ts';
import { historyRange, type Progress } from './progress.ts';
import { repairDelay, retryDelay, type WorkerTiming } from './timing.ts';

/** How often a piece is tried before it goes to the ledger of failures. */
const ATTEMPTS = 3;
const REPAIRS_AT_ONCE = 4;
/** A failed range is split into so many parts: 10,000 blocks come down to the one at fault in five steps. */
const PARTS = 8;
/**
 * With so many failed ranges none is split any more. A whole stretch of history is missing then, not a few blocks, and a
 * list of every block of it would help nobody.
 */
const MANY_FAILED_RANGES = 100;

export interface HistoryLoopOptions {
  /** CCIP's number for the network. */
  readonly selector: string;
  readonly ledger: IndexLedger;
  readonly reader: NetworkReader;
  readonly progress: Progress;
  readonly timing: WorkerTiming;
  /** Whether history begins with the routers' first event, not at a configured block or time. */
  readonly startsWithRouters: boolean;
}

export class HistoryLoop {
  readonly #options: HistoryLoopOptions;
  readonly #selector: string;
  /** How often new ranges came to be owed. */
  #owings = 0;
  #isEmpty = false;
  #isSearchingRouters = false;
  #wake: () => void = () => undefined;
  /** Repairs that failed in a row, and until when, by performance.now(), none is tried again. */
  #backoff = { failures: 0, until: 0 };

  constructor(options: HistoryLoopOptions) {
    this.#options = options;
    this.#selector = options.selector;
    options.progress.onOwed = () => {
      this.#owings++;
      this.#isEmpty = false;
      this.#wake();
    };
  }

  /** Whether all of history has been read, or is on the ledger of failures. */
  get isEmpty(): boolean {
    return this.#isEmpty;
  }

  get isSearchingRouters(): boolean {
    return this.#isSearchingRouters;
  }

  /** Runs until the signal; throws what ends the work: a lost lease, or a newer schema. */
  async run(signal: AbortSignal): Promise<void> {
    const { ledger, reader, progress, timing } = this.#options;
    let attempts = 0;
    /** In a row, of this piece and of those before it: repeated failures must not wear out an endpoint. */
    let failures = 0;
    while (!signal.aborted) {
      try {
        const repaired = await this.#repairDue(signal);
        const owings = this.#owings;
        const owed = await ledger.nextOwed(this.#selector);
        this.#isSearchingRouters = owed?.purpose === 'routers';
        if (!this.#isSearchingRouters) await this.#endSearchForRouters();
        // The follow loop may have added ranges since we looked.
        this.#isEmpty = !owed && owings === this.#owings;
        if (!owed) {
          if (this.#isEmpty && !repaired) await this.#untilWoken(signal);
          continue;
        }
        const piece = { ...reader.nextPiece(owed), id: owed.id };
        const { mark } = progress.book;
        const reading = await reader.readHistory(piece, 'part').catch((error: unknown) => {
          if (isUnrecoverable(error) || signal.aborted) throw error;
          failures++;
          if (++attempts < ATTEMPTS || !this.#isAlive()) throw error;
          return { failure: error };
        });
        attempts = 0;
        if ('failure' in reading) await this.#leaveOut(piece, reasonOf(reading.failure));
        else {
          await this.#recordPiece(reading, piece, mark);
          failures = 0;
        }
        await progress.publishWhenDue();
      } catch (error) {
        if (signal.aborted) return;
        if (isUnrecoverable(error)) throw error;
        progress.setProblem(error);
        await untilLater(retryDelay(failures + 1, timing), signal);
      }
    }
  }

  async #recordPiece(reading: HistoryReading, piece: OwedRange, mark: number): Promise<void> {
    const { progress } = this.#options;
    const read = { ...piece, from: reading.from };
    await progress.record(() => ({
      ...this.#historyStep(reading, read, mark),
      done: { id: piece.id, from: reading.from },
    }));
    progress.noticeRefused(reading);
  }

  async #leaveOut(piece: OwedRange, reason: string): Promise<void> {
    const { progress } = this.#options;
    const { id, from, to } = piece;
    progress.notice(`Blocks ${from} to ${to} cannot be read yet: ${reason}`, 'warn');
    await progress.record(() => ({ failed: [progress.failureOf(piece, reason)], done: { id, from } }));
  }

  #historyStep(reading: HistoryReading, piece: BlockRange, mark: number): IndexStep {
    const { progress, startsWithRouters } = this.#options;
    if (reading.era !== undefined && reading.era !== progress.era) {
      throw new NodeFault(`Blocks were abandoned while ${piece.from} to ${piece.to} were being read`);
    }
    const { startBlock } = progress;
    const routerBlock = piece.purpose === 'routers' ? reading.routerBlock : undefined;
    // The routers' first event may be found late: its range had failed, or the router was added later.
    const isEarlier =
      routerBlock !== undefined && startBlock !== null && routerBlock < startBlock && startsWithRouters;
    return {
      ...stepOf(reading),
      ...(routerBlock !== undefined && { routerBlock }),
      ...(isEarlier && { startBlock: routerBlock }),
      read: piece,
      facts: this.#withFinality(reading.facts),
      owed: [
        ...(isEarlier ? [historyRange(routerBlock, startBlock - 1)] : []),
        ...progress.owedFor(reading.contracts, progress.tip?.number ?? piece.to),
        ...(piece.purpose === 'history' ? progress.owedForOverlap(mark, piece) : []),
      ],
    };
  }

  /** Messages of history are final when they are read. */
  #withFinality(facts: readonly Fact[]): readonly Fact[] {
    const { progress } = this.#options;
    const { final } = progress;
    if (!final) return facts;
    return facts.flatMap((fact) => {
      if (fact.kind !== 'Sent' || fact.seen.blockNumber > final.number) return [fact];
      const sentIn = { number: fact.seen.blockNumber, hash: fact.seen.blockHash };
      return [fact, progress.sourceFinalized(fact.message.messageId, sentIn)];
    });
  }

  /** When the routers' history has been read, the wanted history may begin with their first event. */
  async #endSearchForRouters(): Promise<void> {
    const { ledger, progress } = this.#options;
    if (progress.startBlock !== null) return;
    const { firstRouterBlock, followedFrom } = await ledger.state(this.#selector);
    await progress.record(() => ({ startBlock: firstRouterBlock ?? followedFrom ?? 0 }));
  }

  // ---- The ledger of failures

  /** Retries failed ranges that are due; true where there were any. */
  async #repairDue(signal: AbortSignal): Promise<boolean> {
    const { ledger, reader, progress, timing } = this.#options;
    if (this.#backoffLeft() > 0) return false;
    const due = await ledger.dueFailures(this.#selector, REPAIRS_AT_ONCE);
    for (const failure of due) {
      if (signal.aborted) return true;
      const { id, from, to } = failure;
      try {
        const { mark } = progress.book;
        const reading = await reader.readHistory(failure, 'whole');
        await progress.record(() => ({ ...this.#historyStep(reading, failure, mark), recovered: [id] }));
        progress.notice(`Blocks ${from} to ${to} have been read at last`);
        this.#backoff = { failures: 0, until: 0 };
      } catch (error) {
        if (isUnrecoverable(error) || signal.aborted) throw error;
        // No endpoint could be asked: that says nothing of these blocks.
        if (!this.#isAlive()) throw error;
        await this.#failAgain(failure, error);
        if (error instanceof RangeTooLarge) continue;
        const failures = this.#backoff.failures + 1;
        this.#backoff = { failures, until: performance.now() + retryDelay(failures, timing) };
        return true;
      }
    }
    return due.length > 0;
  }

  /** What can be read must not wait for what cannot: the range is split, or else retried less and less often. */
  async #failAgain(failure: FailedRange, error: unknown): Promise<void> {
    const { progress, timing } = this.#options;
    const { id, since, failures } = failure;
    const reason = reasonOf(error);
    // A node that wants shorter ranges gets them in any case: it would never answer for this one.
    const isSplit = error instanceof RangeTooLarge || progress.owed.failedRanges < MANY_FAILED_RANGES;
    const parts = isSplit ? partsOf(failure) : [failure];
    await progress.record(() =>
      parts.length > 1
        ? {
            recovered: [id],
            // They have not been tried as such: they come due soon, and only their age is that of the whole.
            failed: parts.map((part) => ({ ...progress.failureOf(part, reason), since })),
          }
        : { postponed: [{ id, reason, retryInMs: repairDelay(failures + 1, timing) }] },
    );
  }

  /** In milliseconds. */
  #backoffLeft(): number {
    return Math.max(0, this.#backoff.until - performance.now());
  }

  /** Whether any endpoint answers: a range that fails while none does is not at fault. */
  #isAlive(): boolean {
    const { reader, progress } = this.#options;
    return progress.problem === null || reader.health().some(({ healthy }) => healthy);
  }

  /** Until new ranges are owed, or a failed range may have come due. */
  #untilWoken(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      const timer = setTimeout(wake, this.#backoffLeft() || this.#options.timing.repairMinMs);
      signal.addEventListener('abort', wake);
      this.#wake = wake;
      if (signal.aborted) wake();
    });
  }
}

/** In parts of the same length, or nearly so; one block cannot be split. */
function partsOf(range: BlockRange): readonly BlockRange[] {
  const length = Math.ceil((range.to - range.from + 1) / PARTS);
  const parts: BlockRange[] = [];
  for (let { from } = range; from <= range.to; from += length) {
    parts.push({ ...range, from, to: Math.min(range.to, from + length - 1) });
  }
  return parts;
}
