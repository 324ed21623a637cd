/**
 * The progress of one network: the blocks that are held, the trusted contracts, and the figures that others see.
 *
 * The loops of a worker share this and nothing else. `record` is the only way forward: steps are recorded one after the
 * other, each made from what the one before has left behind. What is kept here is what the store has acknowledged.
 */

import type { Notice, NoticeLevel } from '../../base/notice.ts';
import type { Observation, SourceFinalized } from '../../domain/facts.ts';
import { operatorProblems, type ProblemKind } from '../../domain/indexing-problem.ts';
import type { Network } from '../../domain/networks.ts';
import type {
  BlockId,
  BlockRange,
  HeadFigures,
  IndexLedger,
  IndexState,
  IndexStep,
  NamedContract,
  NewFailure,
  OwedFigures,
} from '../../store/ledger/index-ledger.ts';
import { ContractBook } from './contract-book.ts';
import type { Reading } from './family.ts';
import { NodeFault, problemKindOf, reasonOf } from './faults.ts';
import { repairDelay, type WorkerTiming } from './timing.ts';

export interface ProgressOptions {
  readonly network: Network;
  readonly ledger: IndexLedger;
  readonly holder: string;
  readonly timing: WorkerTiming;
  readonly notice: Notice;
}

export class Progress {
  readonly book = new ContractBook();
  /** Of the newest block. */
  figures: HeadFigures | null = null;
  /** Seconds since 1970, of the newest block. */
  headTime = 0;
  /** Called when new ranges are owed. */
  onOwed: () => void = () => undefined;
  /** Contracts whose events have to be read again too when history is read again for these. Set by the family. */
  rereadWith: (contracts: readonly string[]) => readonly string[] = (contracts) => contracts;

  readonly #options: ProgressOptions;
  readonly #selector: string;
  #held: readonly BlockId[] = [];
  #startBlock: number | null = null;
  #followedFrom: number | null = null;
  #era = 0;
  #counts = { created: 0, updated: 0, removed: 0 };
  #owed: OwedFigures = { owedBlocks: 0, failedRanges: 0 };
  #problem: Problem | null = null;
  #publishedAt = 0;
  #recording: Promise<void> = Promise.resolve();

  constructor(options: ProgressOptions) {
    this.#options = options;
    this.#selector = options.network.selector;
  }

  /** Continues from what is stored. The family loads the trusted contracts. */
  load({ blocks, startBlock, followedFrom }: IndexState): void {
    this.#held = blocks;
    this.#startBlock = startBlock;
    this.#followedFrom = followedFrom;
  }

  /** Blocks that may be abandoned, by height, above the newest that is final. Empty where nothing has been read. */
  get held(): readonly BlockId[] {
    return this.#held;
  }

  get final(): BlockId | undefined {
    return this.#held[0];
  }

  get tip(): BlockId | undefined {
    return this.#held.at(-1);
  }

  /** Changes whenever blocks are abandoned. */
  get era(): number {
    return this.#era;
  }

  /** The first block of the wanted history; null while it is being looked for. */
  get startBlock(): number | null {
    return this.#startBlock;
  }

  get counts(): { readonly created: number; readonly updated: number; readonly removed: number } {
    return this.#counts;
  }

  /** As of the latest `publish`. */
  get owed(): OwedFigures {
    return this.#owed;
  }

  get problem(): string | null {
    return this.#problem?.text ?? null;
  }

  /**
   * Records a step. `makeStep` is called when its turn has come: a contract that one loop has just learned of cannot
   * slip past the blocks that the other loop is reading.
   */
  record(makeStep: () => IndexStep | Promise<IndexStep>): Promise<void> {
    const { ledger, holder } = this.#options;
    const recorded = this.#recording.then(async () => {
      const step = await makeStep();
      const { created, updated, removed } = await ledger.record(this.#selector, holder, step);
      this.#counts = {
        created: this.#counts.created + created,
        updated: this.#counts.updated + updated,
        removed: this.#counts.removed + removed,
      };
      this.#remember(step);
    });
    this.#recording = recorded.catch(() => undefined);
    return recorded;
  }

  /** Repeats in memory what the store has done. */
  #remember(step: IndexStep): void {
    const { orphaned = [], blocks = [], forgetBelow = 0, contracts = [], owed = [] } = step;
    this.book.forget(orphaned);
    this.book.add(contracts);
    if (orphaned.length > 0) this.#era++;
    const gone = new Set(orphaned);
    const held = new Map(
      this.#held.filter(({ hash }) => !gone.has(hash)).map((block) => [block.number, block]),
    );
    for (const { number, hash } of blocks) held.set(number, { number, hash });
    this.#held = [...held.values()]
      .filter(({ number }) => number >= forgetBelow)
      .sort((a, b) => a.number - b.number);
    this.#startBlock = step.startBlock ?? this.#startBlock;
    this.#followedFrom ??= step.followedFrom ?? null;
    if (owed.length > 0) this.onOwed();
  }

  /** What was read before these contracts were known has to be read again for them. */
  owedFor(named: readonly NamedContract[], readTo: number): readonly BlockRange[] {
    const from = this.#startBlock ?? this.#followedFrom;
    return this.#owedAgain(
      named.map(({ address }) => address),
      from,
      readTo,
    );
  }

  /** Blocks that were being read while the other loop learned of more contracts have to be read again for those. */
  owedForOverlap(mark: number, { from, to }: { readonly from: number; readonly to: number }) {
    return this.#owedAgain(this.book.since(mark), from, to);
  }

  #owedAgain(contracts: readonly string[], from: number | null, to: number): readonly BlockRange[] {
    if (contracts.length === 0 || from === null || from > to) return [];
    return [{ from, to, purpose: 'contracts', contracts: this.rereadWith(contracts) }];
  }

  /** A range for the ledger of failures. */
  failureOf({ from, to, purpose, contracts }: BlockRange, reason: string): NewFailure {
    return { from, to, purpose, contracts, reason, retryInMs: repairDelay(1, this.#options.timing) };
  }

  /** Finality rests on the block of the send: it is taken back together with it. */
  sourceFinalized(messageId: string, sentIn: BlockId): SourceFinalized {
    return { kind: 'SourceFinalized', messageId, seen: this.observedAt(sentIn) };
  }

  /** An observation that is not an event of the chain: it rests on a block, and was made at the head's time. */
  observedAt(block: BlockId): Observation {
    return {
      network: this.#selector,
      blockNumber: block.number,
      blockHash: block.hash,
      transactionHash: null,
      logIndex: null,
      at: new Date(this.headTime * 1000).toISOString(),
    };
  }

  notice(line: string, level: NoticeLevel = 'info'): void {
    this.#options.notice(line, { level, network: this.#options.network.name });
  }

  /** Reports contracts that a reading does not trust, and events that it could not decode. */
  noticeRefused({ refused, unreadable }: Pick<Reading, 'refused'> & Partial<Reading>): void {
    for (const refusal of refused) this.notice(`${refusal}; it is not believed`, 'warn');
    const [unread, ...more] = unreadable ?? [];
    if (!unread) return;
    const { blockNumber, logIndex, reason } = unread;
    const others = more.length > 0 ? ` (and ${more.length} more)` : '';
    this.notice(
      `Log ${logIndex} of block ${blockNumber} cannot be understood and is kept: ${reason}${others}`,
      'warn',
    );
  }

  /** Sets what keeps the network from progress, until `clearProblem`. */
  setProblem(error: unknown): void {
    const text = reasonOf(error);
    const kind = problemKindOf(error);
    // Faults of endpoints were reported when the endpoints were set back.
    if (this.#problem === null && !(error instanceof NodeFault)) {
      this.notice(text, operatorProblems.has(kind) ? 'error' : 'warn');
    }
    const { since = performance.now(), isEscalated = false } = this.#problem ?? {};
    const lastedMs = performance.now() - since;
    const escalates = !isEscalated && lastedMs >= this.#options.timing.escalateAfterMs;
    if (escalates) {
      const duration = `${Math.round(lastedMs / 1000)} s`;
      this.notice(`Nothing could be read for ${duration}; still retrying. Last problem: ${text}`, 'error');
    }
    this.#problem = { text, kind, since, isEscalated: isEscalated || escalates };
  }

  clearProblem(): void {
    if (this.#problem?.isEscalated) {
      const duration = `${Math.round((performance.now() - this.#problem.since) / 1000)} s`;
      this.notice(`Reading goes on, after ${duration}`);
    }
    this.#problem = null;
  }

  async publishWhenDue(): Promise<void> {
    if (Date.now() - this.#publishedAt < this.#options.timing.publishEveryMs) return;
    await this.publish();
  }

  /** Stores the figures for others to see, and learns how much is owed. */
  async publish(): Promise<void> {
    this.#publishedAt = Date.now();
    this.#owed = await this.#options.ledger.reportProgress(this.#selector, this.figures, this.#problem);
  }
}

interface Problem {
  /** For the operator: it may name hosts. */
  readonly text: string;
  readonly kind: ProblemKind;
  /** On performance.now()'s clock. */
  readonly since: number;
  /** Whether it was reported as an error. */
  readonly isEscalated: boolean;
}

/** A range of everybody's history, both ends included. */
export function historyRange(from: number, to: number): BlockRange {
  return { from, to, purpose: 'history', contracts: null };
}
