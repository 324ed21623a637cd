/**
 * The progress of one network: the blocks that are held, the trusted contracts, and the figures that others see.
 *
 * The loops of a worker share this and nothing else. `record` is the only way forward: steps are recorded one after the
 * other, each made from what the one before has left behind. What is kept here is what the store has acknowledged.
 */

import type { Notice, NoticeLevel } from '../../base/notice.ts';
import type { Observation, SourceFinalized } from '../../domain/facts.ts';
import type { Network } from '../../domain/networks/networks.ts';
import type {
  BacklogStats,
  BlockId,
  BlockRange,
  HeadFigures,
  IndexLedger,
  IndexState,
  IndexStep,
  NewFailure,
} from '../../store/ledger/index-ledger.ts';
import { type ContractRegistry, createContractRegistry } from './contract-registry.ts';
import type { Reading } from './family.ts';
import { createNetworkProblem } from './network-problem.ts';
import { mergePending, type Span, without } from './pending-ranges.ts';
import { repairDelay, type WorkerTiming } from './timing.ts';

/** Clocks differ. A head an hour ahead of ours is a fault. */
export const MAX_AHEAD_MS = 3_600_000;

export interface ProgressOptions {
  readonly network: Network;
  readonly ledger: IndexLedger;
  readonly holder: string;
  readonly timing: WorkerTiming;
  readonly notice: Notice;
}

/** Blocks that were read without these contracts. Those of them that are still on the backlog need no second reading. */
export interface Rescan {
  readonly contracts: readonly string[];
  readonly spans: readonly Span[];
}

export interface Step extends IndexStep {
  readonly rescans?: readonly Rescan[];
}

/** A moment of the progress, taken before blocks are read: what happened since decides whether the reading holds. */
export interface ReadMark {
  readonly contracts: number;
  /** Changes whenever blocks are abandoned. */
  readonly era: number;
  /** Changes whenever blocks are abandoned that were final. */
  readonly finalEra: number;
}

export interface Progress {
  readonly registry: ContractRegistry;
  /** Of the newest block. */
  readonly figures: HeadFigures | null;
  /** Seconds since 1970, of the newest block. */
  readonly headTime: number;
  /** In milliseconds since 1970: no block that was read is of a later time. */
  readonly latestAt: number;
  /**
   * Blocks that may be abandoned, by height, above the newest that is final. The newest blocks are all there; further
   * down, where history is read above the final block, only those in which something was found. Empty where nothing has
   * been read.
   */
  readonly held: readonly BlockId[];
  readonly final: BlockId | undefined;
  readonly tip: BlockId | undefined;
  /** The first block of the history; null until it is known. */
  readonly startBlock: number | null;
  readonly counts: { readonly created: number; readonly updated: number; readonly removed: number };
  /** As of the latest `publish`. */
  readonly pending: BacklogStats;
  readonly problem: string | null;
  /** Continues from what is stored. The family loads the trusted contracts. */
  load(state: IndexState): void;
  setHead(figures: HeadFigures, headTime: number): void;
  /** Has `wake` called whenever new ranges are pending. */
  onPending(wake: () => void): void;
  /** Contracts whose events have to be read again too when history is read again for others. Set by the family. */
  extendRescans(extend: (contracts: readonly string[]) => readonly string[]): void;
  mark(): ReadMark;
  /** Whether blocks that were read since the mark may have been abandoned meanwhile. */
  isStale(mark: ReadMark, isFinal: boolean): boolean;
  /**
   * Records a step. `makeStep` is called when its turn has come: a contract that one loop has just learned of cannot
   * slip past the blocks that the other loop is reading.
   */
  record(makeStep: () => Step | Promise<Step>): Promise<void>;
  /** What was read before these contracts were known, up to `readTo` and except `covered`, is read again for them. */
  rescansFor(contracts: readonly string[], readTo: number, covered?: Span): readonly Rescan[];
  /** Blocks that were being read while the other loop learned of more contracts are read again for those. */
  rescansSince(mark: ReadMark, span: Span): readonly Rescan[];
  /** A range for the ledger of failures. */
  failureOf(range: BlockRange, reason: string): NewFailure;
  /** Finality rests on the block of the send: it is taken back together with it. */
  sourceFinalized(messageId: string, sentIn: BlockId): SourceFinalized;
  /** An observation that is not an event of the chain: it rests on a block, and was made at the head's time. */
  observedAt(block: BlockId): Observation;
  log(line: string, level?: NoticeLevel): void;
  /** Reports contracts that a reading does not trust, and events that it could not decode. */
  logRejected(reading: Pick<Reading, 'rejected'> & Partial<Reading>): void;
  /** Sets what keeps the network from progress, until `clearProblem`. */
  setProblem(error: unknown): void;
  clearProblem(): void;
  publishWhenDue(): Promise<void>;
  /** Stores the figures for others to see, and learns how much is pending. */
  publish(): Promise<void>;
}

export function createProgress({ network, ledger, holder, timing, notice }: ProgressOptions): Progress {
  const { selector } = network;
  const registry = createContractRegistry();
  let figures: HeadFigures | null = null;
  let headTime = 0;
  let latestAt = Date.now() + MAX_AHEAD_MS;
  let held: readonly BlockId[] = [];
  let startBlock: number | null = null;
  let era = 0;
  let finalEra = 0;
  let counts = { created: 0, updated: 0, removed: 0 };
  let pending: BacklogStats = { owedBlocks: 0, failedRanges: 0 };
  /** On performance.now()'s clock, which never goes back: others take a silent worker for a dead one. */
  let publishedAt = Number.NEGATIVE_INFINITY;
  let recording: Promise<void> = Promise.resolve();
  let wake: () => void = () => undefined;
  let extend: (contracts: readonly string[]) => readonly string[] = (contracts) => contracts;

  const say = (line: string, level: NoticeLevel = 'info') => notice(line, { level, network: network.name });
  const problem = createNetworkProblem({ escalateAfterMs: timing.escalateAfterMs, notice: say });

  /** The step with its rescans as pending ranges: without what is on the backlog, put together with what is pending already. */
  const withRescans = async ({ rescans = [], ...step }: Step): Promise<IndexStep> => {
    if (rescans.length === 0) return step;
    const { done, pending: added = [] } = step;
    const rows = (await ledger.pendingRanges(selector))
      .map((row) => (row.id === done?.id ? { ...row, to: done.from - 1 } : row))
      .filter(({ from, to }) => from <= to);
    const pending = [...rows, ...added].filter(({ purpose }) => purpose === 'history');
    const ranges = rescans.flatMap(({ contracts, spans }) =>
      spans
        .flatMap((span) => without(span, pending))
        .map((span): BlockRange => ({ ...span, purpose: 'contracts', contracts: extend(contracts) })),
    );
    return { ...step, ...mergePending(rows, [...added, ...ranges]) };
  };

  /** Repeats in memory what the store has done. */
  const remember = (step: IndexStep): void => {
    const { orphaned = [], blocks = [], forgetBelow = 0, contracts = [] } = step;
    registry.forget(orphaned);
    registry.add(contracts);
    const gone = new Set(orphaned);
    if (gone.size > 0) era++;
    if (held[0] && gone.has(held[0].hash)) finalEra++;
    const stays = new Map(held.filter(({ hash }) => !gone.has(hash)).map((block) => [block.number, block]));
    for (const { number, hash } of blocks) stays.set(number, { number, hash });
    held = [...stays.values()]
      .filter(({ number }) => number >= forgetBelow)
      .sort((a, b) => a.number - b.number);
    startBlock = step.startBlock ?? startBlock;
    if ((step.pending && step.pending.length > 0) || step.endsAt !== undefined) wake();
  };

  const publish = async () => {
    publishedAt = performance.now();
    pending = await ledger.reportProgress(selector, figures, problem.current);
  };

  const observedAt = (block: BlockId): Observation => ({
    network: selector,
    blockNumber: block.number,
    blockHash: block.hash,
    transactionHash: null,
    logIndex: null,
    at: new Date(headTime * 1000).toISOString(),
  });

  return {
    registry,
    get figures() {
      return figures;
    },
    get headTime() {
      return headTime;
    },
    get latestAt() {
      return latestAt;
    },
    get held() {
      return held;
    },
    get final() {
      return held[0];
    },
    get tip() {
      return held.at(-1);
    },
    get startBlock() {
      return startBlock;
    },
    get counts() {
      return counts;
    },
    get pending() {
      return pending;
    },
    get problem() {
      return problem.current?.text ?? null;
    },
    load(state) {
      held = state.blocks;
      startBlock = state.startBlock;
      const { head } = state;
      // What was read after the head was published is not known to be earlier.
      if (head && head.number >= (held.at(-1)?.number ?? 0)) latestAt = head.at;
    },
    setHead(newFigures, newHeadTime) {
      figures = newFigures;
      latestAt = newFigures.headAt;
      headTime = newHeadTime;
    },
    onPending(newWake) {
      wake = newWake;
    },
    extendRescans(newExtend) {
      extend = newExtend;
    },
    mark: () => ({ contracts: registry.mark, era, finalEra }),
    isStale: (mark, isFinal) => mark.finalEra !== finalEra || (!isFinal && mark.era !== era),
    record(makeStep) {
      const recorded = recording.then(async () => {
        const step = await withRescans(await makeStep());
        const { created, updated, removed } = await ledger.record(selector, holder, step);
        counts = {
          created: counts.created + created,
          updated: counts.updated + updated,
          removed: counts.removed + removed,
        };
        remember(step);
      });
      recording = recorded.catch(() => undefined);
      return recorded;
    },
    rescansFor(contracts, readTo, covered) {
      if (contracts.length === 0) return [];
      const spans = without({ from: startBlock ?? 0, to: readTo }, covered ? [covered] : []);
      return [{ contracts, spans }];
    },
    rescansSince(mark, span) {
      const contracts = registry.since(mark.contracts);
      return contracts.length === 0 ? [] : [{ contracts, spans: [span] }];
    },
    failureOf: ({ from, to, purpose, contracts }, reason) => ({
      from,
      to,
      purpose,
      contracts,
      reason,
      retryInMs: repairDelay(1, timing),
    }),
    sourceFinalized: (messageId, sentIn) => ({
      kind: 'SourceFinalized',
      messageId,
      seen: observedAt(sentIn),
    }),
    observedAt,
    log: say,
    logRejected({ rejected, unreadable }) {
      for (const rpcError of rejected) say(`${rpcError}; it is not believed`, 'warn');
      const [unread, ...more] = unreadable ?? [];
      if (!unread) return;
      const { blockNumber, logIndex, reason } = unread;
      const others = more.length > 0 ? ` (and ${more.length} more)` : '';
      say(
        `Log ${logIndex} of block ${blockNumber} cannot be understood and is kept: ${reason}${others}`,
        'warn',
      );
    },
    setProblem: problem.set,
    clearProblem: problem.clear,
    async publishWhenDue() {
      if (performance.now() - publishedAt >= timing.publishEveryMs) await publish();
    },
    publish,
  };
}
