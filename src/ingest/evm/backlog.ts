/**
 * The loop over what is owed: history from its newest end, and the ledger of failures.
 *
 * History is read in pieces whose length follows what nodes take and how much they say. A piece that nobody gives goes
 * to the ledger, and reading goes on below it.
 */
import type { Fact } from '../../domain/facts.ts';
import {
  type BlockRange,
  endsWork,
  type FailedRange,
  type IndexStep,
  type OwedRange,
} from '../../store/index-ledger.ts';
import { untilLater } from '../work.ts';
import { type Hex, NodeFault, RangeTooLarge } from './chain.ts';
import { refuseStrangers } from './head.ts';
import { repairIn, retryIn } from './pace.ts';
import { historyRange, type LoopParts, reasonOf } from './progress.ts';
import { type Reading, stepOf } from './reading.ts';

/** Logs that one step over history should have: enough to be worth a transaction, few enough to fit in memory. */
const WANTED_LOGS = 1_000;
const FIRST_RANGE = 1_000;
/** Pieces that are read well before one dares to ask for more again than was refused. */
const PIECES_BEFORE_MORE = 16;
/** Headers are asked for one by one; a range that is checked against them is shorter. */
const MAX_CHECKED_RANGE = 250;
/** How often a piece is tried before it goes to the ledger of failures. */
const ATTEMPTS = 3;
const REPAIRS_AT_ONCE = 4;
/** A failed range is split into so many parts: 10,000 blocks come down to the one at fault in five steps. */
const PARTS = 8;
/**
 * With so many failed ranges none is split any more. It is not a few blocks then that nobody has but a stretch of
 * history, and to list every block of it would help nobody.
 */
const MANY_FAILED_RANGES = 100;

/** What some blocks of history said, and in which era, if that can end. */
type PieceReading = Reading & { readonly era: number | undefined };

export class Backlog {
  readonly #parts: LoopParts;
  readonly #selector: string;
  #range = FIRST_RANGE;
  #piecesBeforeMore = 0;
  /** How often something new came to be owed. */
  #owings = 0;
  #isEmpty = false;
  #isSearchingRouters = false;
  #wake: () => void = () => undefined;
  /** How many failed ranges in a row were tried in vain, and until when, by performance.now(), none is tried again. */
  #vain = { repairs: 0, restUntil: 0 };

  constructor(parts: LoopParts) {
    this.#parts = parts;
    this.#selector = parts.source.network.selector;
    parts.progress.whenOwed = () => {
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

  /** Until the signal; throws what ends the work: a lost lease, or a newer schema. */
  async run(signal: AbortSignal): Promise<void> {
    const { ledger, progress, pace } = this.#parts;
    let attempts = 0;
    /** In a row, of this piece and of those before it: one failure after the other must not wear out an endpoint. */
    let failures = 0;
    while (!signal.aborted) {
      try {
        const repaired = await this.#repairDue(signal);
        const owings = this.#owings;
        const owed = await ledger.nextOwed(this.#selector);
        this.#isSearchingRouters = owed?.purpose === 'routers';
        if (!this.#isSearchingRouters) await this.#endSearchForRouters();
        // The other loop may have come to owe something since we looked.
        this.#isEmpty = !owed && owings === this.#owings;
        if (!owed) {
          if (this.#isEmpty && !repaired) await this.#untilWoken(signal);
          continue;
        }
        const piece = { ...owed, from: Math.max(owed.from, owed.to - this.#rangeLength() + 1) };
        const { mark } = progress.book;
        const reading = await this.#readPiece(piece).catch((error: unknown) => {
          if (endsWork(error) || signal.aborted) throw error;
          if (this.#shorten(error, piece)) return undefined;
          failures++;
          if (++attempts < ATTEMPTS || !this.#isAlive()) throw error;
          return { failure: error };
        });
        if (!reading) continue;
        attempts = 0;
        if ('failure' in reading) await this.#leaveOut(piece, reasonOf(reading.failure));
        else {
          await this.#takeIn(reading, piece, mark);
          failures = 0;
        }
        await progress.tellWhenDue();
      } catch (error) {
        if (signal.aborted) return;
        if (endsWork(error)) throw error;
        progress.tellProblem(error);
        await untilLater(retryIn(failures + 1, pace), signal);
      }
    }
  }

  // ---- History

  #readPiece({ from, to, contracts }: BlockRange): Promise<PieceReading> {
    const { source, chain, reader, progress } = this.#parts;
    const { final: anchor, era } = progress;
    if (!anchor) throw new Error('History is read behind a block that is final');
    const isFinal = to <= anchor.number;
    return chain.run(
      async (node) => {
        const isChecked = source.verify === 'all' || !isFinal;
        // With one more, where there is one: its parent must be the last of these.
        const end = isChecked ? Math.max(to, Math.min(to + 1, anchor.number)) : from - 1;
        const numbers = Array.from({ length: end - from + 1 }, (_, index) => from + index);
        const blocks = await node.blocks([...numbers, anchor.number]);
        refuseStrangers(node, blocks.slice(0, -1));
        for (const { number, hash } of blocks) {
          const held = progress.held.find((block) => block.number === number);
          if (held && held.hash !== hash)
            throw new NodeFault(`${node.name} has another block ${number} than was read`);
        }
        const reading = await reader.read(node, {
          from,
          to,
          contracts: contracts as readonly Hex[] | null,
          ...(isChecked && { headers: blocks.slice(0, to - from + 1) }),
          mayBeAbandoned: !isFinal,
        });
        return { ...reading, era: isFinal ? undefined : era };
      },
      Math.max(to, anchor.number),
    );
  }

  async #takeIn(reading: PieceReading, piece: OwedRange, mark: number): Promise<void> {
    const { progress } = this.#parts;
    const { id, from } = piece;
    await progress.record(() => ({ ...this.#historyStep(reading, piece, mark), done: { id, from } }));
    progress.noticeRefused(reading);
    this.#adapt(reading.logs, piece);
  }

  async #leaveOut(piece: OwedRange, reason: string): Promise<void> {
    const { progress } = this.#parts;
    const { id, from, to } = piece;
    progress.notice(`Blocks ${from} to ${to} cannot be read yet: ${reason}`);
    await progress.record(() => ({ failed: [progress.failureOf(piece, reason)], done: { id, from } }));
  }

  #historyStep(reading: PieceReading, piece: BlockRange, mark: number): IndexStep {
    const { source, progress } = this.#parts;
    if (reading.era !== undefined && reading.era !== progress.era) {
      throw new NodeFault(`Blocks were abandoned while ${piece.from} to ${piece.to} were being read`);
    }
    const { startBlock } = progress;
    const routerBlock = piece.purpose === 'routers' ? reading.routerBlock : undefined;
    // The routers' first word may be found late: its range had failed, or the router was added later.
    const isEarlier =
      routerBlock !== undefined && startBlock !== null && routerBlock < startBlock && source.start === null;
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
    const { progress } = this.#parts;
    const { final } = progress;
    if (!final) return facts;
    return facts.flatMap((fact) => {
      if (fact.kind !== 'Sent' || fact.seen.blockNumber > final.number) return [fact];
      const sentIn = { number: fact.seen.blockNumber, hash: fact.seen.blockHash };
      return [fact, progress.sourceFinalized(fact.message.messageId, sentIn)];
    });
  }

  /** When the routers' history has been read, the history that is wanted may begin with it. */
  async #endSearchForRouters(): Promise<void> {
    const { ledger, progress } = this.#parts;
    if (progress.startBlock !== null) return;
    const { firstRouterBlock, followedFrom } = await ledger.state(this.#selector);
    await progress.record(() => ({ startBlock: firstRouterBlock ?? followedFrom ?? 0 }));
  }

  // ---- How much to ask for at once

  #rangeLength(): number {
    const { verify, maxRange } = this.#parts.source;
    const longest = verify === 'all' ? MAX_CHECKED_RANGE : maxRange;
    return Math.max(1, Math.min(this.#range, longest, maxRange));
  }

  #shorten(error: unknown, { from, to }: BlockRange): boolean {
    if (!(error instanceof RangeTooLarge) || to <= from) return false;
    const length = to - from + 1;
    this.#range = Math.max(1, Math.min(error.acceptedBlocks ?? Infinity, length >> 1));
    this.#piecesBeforeMore = PIECES_BEFORE_MORE;
    return true;
  }

  #adapt(logs: number, { from, to }: BlockRange): void {
    const length = to - from + 1;
    const wanted = Math.floor((length * WANTED_LOGS) / Math.max(1, logs));
    // Only a whole piece says that more might have been taken.
    const isWhole = length >= this.#rangeLength();
    const grown = isWhole && this.#piecesBeforeMore === 0 ? this.#range * 2 : this.#range;
    if (isWhole && this.#piecesBeforeMore > 0) this.#piecesBeforeMore--;
    this.#range = Math.max(1, Math.min(grown, wanted, this.#parts.source.maxRange));
  }

  // ---- The ledger of failures

  /** Tries failed ranges whose time has come; true where there were any. */
  async #repairDue(signal: AbortSignal): Promise<boolean> {
    const { ledger, progress, pace } = this.#parts;
    if (this.#restLeft() > 0) return false;
    const due = await ledger.dueFailures(this.#selector, REPAIRS_AT_ONCE);
    for (const failure of due) {
      if (signal.aborted) return true;
      const { id, from, to } = failure;
      try {
        const { mark } = progress.book;
        const reading = await this.#readPiece(failure);
        await progress.record(() => ({ ...this.#historyStep(reading, failure, mark), recovered: [id] }));
        progress.notice(`Blocks ${from} to ${to} have been read at last`);
        this.#vain = { repairs: 0, restUntil: 0 };
      } catch (error) {
        if (endsWork(error) || signal.aborted) throw error;
        // Nobody could be asked: that says nothing of these blocks.
        if (!this.#isAlive()) throw error;
        await this.#failAgain(failure, error);
        if (error instanceof RangeTooLarge) continue;
        const repairs = this.#vain.repairs + 1;
        this.#vain = { repairs, restUntil: performance.now() + retryIn(repairs, pace) };
        return true;
      }
    }
    return due.length > 0;
  }

  /** What can be read is not to be held up by what cannot: the range is split, or else tried less and less often. */
  async #failAgain(failure: FailedRange, error: unknown): Promise<void> {
    const { progress, pace } = this.#parts;
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
        : { postponed: [{ id, reason, retryIn: repairIn(failures + 1, pace) }] },
    );
  }

  /** In milliseconds. */
  #restLeft(): number {
    return Math.max(0, this.#vain.restUntil - performance.now());
  }

  /** Whether any endpoint answers: a range that fails while none does is not at fault. */
  #isAlive(): boolean {
    const { chain, progress } = this.#parts;
    return progress.problem === null || chain.health().some(({ healthy }) => healthy);
  }

  /** Until something is owed, or a failed range may have come due. */
  #untilWoken(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      const timer = setTimeout(wake, this.#restLeft() || this.#parts.pace.soonestRepair);
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
