/**
 * How far a network is: the blocks that are held, whom we believe, and what the world is told of it.
 *
 * The loops of a worker share this and nothing else. `record` is the one way on: steps come one after the other, each
 * made from what the one before has left behind, and what is remembered here is what the store has acknowledged.
 */
import type { Observation, SourceFinalized } from '../../domain/facts.ts';
import { operatorProblems, type ProblemKind } from '../../domain/indexing-problem.ts';
import type { Network } from '../../domain/networks.ts';
import type { Notice, NoticeLevel } from '../../domain/notice.ts';
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
} from '../../store/index-ledger.ts';
import { type Chain, type Hex, NodeFault, RangeTooLarge } from './chain.ts';
import { ContractBook } from './contract-book.ts';
import { repairIn, type WorkerPace } from './pace.ts';
import type { BlockReader, Reading } from './reading.ts';
import type { NetworkSource } from './source.ts';

/** What each loop of a worker works with. */
export interface LoopParts {
  readonly source: NetworkSource;
  readonly chain: Chain;
  readonly ledger: IndexLedger;
  readonly reader: BlockReader;
  readonly progress: Progress;
  readonly pace: WorkerPace;
}

export interface ProgressOptions {
  readonly network: Network;
  readonly ledger: IndexLedger;
  readonly holder: string;
  readonly pace: WorkerPace;
  readonly notice: Notice;
}

const MAX_REASON = 300;

export class Progress {
  readonly book = new ContractBook();
  /** Of the newest block. */
  figures: HeadFigures | null = null;
  /** Seconds since 1970, of the newest block. */
  headTime = 0;
  /** Called when something new has come to be owed. */
  whenOwed: () => void = () => undefined;

  readonly #options: ProgressOptions;
  readonly #selector: string;
  #held: readonly BlockId[] = [];
  #startBlock: number | null = null;
  #followedFrom: number | null = null;
  #era = 0;
  #counts = { created: 0, updated: 0, removed: 0 };
  #owed: OwedFigures = { owedBlocks: 0, failedRanges: 0 };
  #problem: Problem | null = null;
  #toldAt = 0;
  #recording: Promise<void> = Promise.resolve();

  constructor(options: ProgressOptions) {
    this.#options = options;
    this.#selector = options.network.selector;
  }

  /** Goes on from what is stored. */
  load({ blocks, startBlock, followedFrom, contracts }: IndexState, routers: readonly Hex[]): void {
    this.#held = blocks;
    this.#startBlock = startBlock;
    this.#followedFrom = followedFrom;
    this.book.load(contracts, routers);
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

  /** Ends whenever blocks are abandoned. */
  get era(): number {
    return this.#era;
  }

  /** Where the history that is wanted begins; null while that is being looked for. */
  get startBlock(): number | null {
    return this.#startBlock;
  }

  get counts(): { readonly created: number; readonly updated: number; readonly removed: number } {
    return this.#counts;
  }

  /** As of when the world was told. */
  get owed(): OwedFigures {
    return this.#owed;
  }

  get problem(): string | null {
    return this.#problem?.text ?? null;
  }

  /**
   * Records a step. It is made when its turn has come: a contract that one loop has just named cannot slip past the
   * blocks that the other loop is reading.
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

  /** As the store does. */
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
    if (owed.length > 0) this.whenOwed();
  }

  /** Whatever was read before contracts were named is to be read again for them. */
  owedFor(named: readonly NamedContract[], readTo: number): readonly BlockRange[] {
    const from = this.#startBlock ?? this.#followedFrom;
    return this.#owedAgain(
      named.map(({ address }) => address),
      from,
      readTo,
    );
  }

  /** Blocks that were being read while the other loop came to know more contracts are to be read again for those. */
  owedForOverlap(mark: number, { from, to }: { readonly from: number; readonly to: number }) {
    return this.#owedAgain(this.book.since(mark), from, to);
  }

  #owedAgain(contracts: readonly string[], from: number | null, to: number): readonly BlockRange[] {
    if (contracts.length === 0 || from === null || from > to) return [];
    return [{ from, to, purpose: 'contracts', contracts: this.#withBlessers(contracts) }];
  }

  /** Blessings name a commit store: those of one that was not known were passed over, and are to be read again too. */
  #withBlessers(contracts: readonly string[]): readonly string[] {
    const roleOf = (address: string) => this.book.contracts.get(address as Hex)?.role;
    if (!contracts.some((address) => roleOf(address) !== 'rmn')) return contracts;
    const blessers = [...this.book.contracts.values()].filter(({ role }) => role === 'rmn');
    return [...new Set([...contracts, ...blessers.map(({ address }) => address)])];
  }

  /** A range for the ledger of failures. */
  failureOf({ from, to, purpose, contracts }: BlockRange, reason: string): NewFailure {
    return { from, to, purpose, contracts, reason, retryIn: repairIn(1, this.#options.pace) };
  }

  /** Finality rests on the block of the sending: it stands and falls with it. */
  sourceFinalized(messageId: string, sentIn: BlockId): SourceFinalized {
    return { kind: 'SourceFinalized', messageId, seen: this.noticed(sentIn) };
  }

  /** Something that the chain did not say in a log: it rests on a block, and was noticed at the head's time. */
  noticed(block: BlockId): Observation {
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

  /** Whom a reading does not believe, and what it did not understand. */
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

  /** What keeps the network from going on, until `endProblem`. */
  tellProblem(error: unknown): void {
    const text = reasonOf(error);
    const kind = kindOf(error);
    // What endpoints did wrong was reported when they were set back.
    if (this.#problem === null && !(error instanceof NodeFault))
      this.notice(text, operatorProblems.has(kind) ? 'error' : 'warn');
    const { since = performance.now(), isEscalated = false } = this.#problem ?? {};
    const lasted = performance.now() - since;
    const escalates = !isEscalated && lasted >= this.#options.pace.escalateAfter;
    if (escalates)
      this.notice(
        `Nothing could be read for ${seconds(lasted)}; still retrying. Last problem: ${text}`,
        'error',
      );
    this.#problem = { text, kind, since, isEscalated: isEscalated || escalates };
  }

  endProblem(): void {
    if (this.#problem?.isEscalated)
      this.notice(`Reading goes on, after ${seconds(performance.now() - this.#problem.since)}`);
    this.#problem = null;
  }

  async tellWhenDue(): Promise<void> {
    if (Date.now() - this.#toldAt < this.#options.pace.tellEvery) return;
    await this.tell();
  }

  /** Tells the world, and learns how much is owed. */
  async tell(): Promise<void> {
    this.#toldAt = Date.now();
    this.#owed = await this.#options.ledger.tellProgress(this.#selector, this.figures, this.#problem);
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

function kindOf(error: unknown): ProblemKind {
  if (error instanceof NodeFault) return error.kind;
  return error instanceof RangeTooLarge ? 'range-refused' : 'internal';
}

function seconds(milliseconds: number): string {
  return `${Math.round(milliseconds / 1000)} s`;
}

/** For people. */
export function reasonOf(error: unknown): string {
  return String((error as Error | undefined)?.message ?? error).slice(0, MAX_REASON);
}

/** Blocks of everybody's history, both ends included. */
export function historyRange(from: number, to: number): BlockRange {
  return { from, to, purpose: 'history', contracts: null };
}
