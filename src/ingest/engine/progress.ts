/** The progress of one network, which the loops of its worker and its chain family share: each part has one owner. */
import type { LogLineLevel, WriteLog } from '../../base/log.ts';
import type { Observation, SourceFinalized } from '../../domain/facts.ts';
import { operatorProblems, type ProblemKind } from '../../domain/networks/indexing-problem.ts';
import type { Network } from '../../domain/networks/networks.ts';
import {
  type BacklogStats,
  type BlockId,
  type BlockRange,
  type HeadStats,
  type IndexLedger,
  type IndexState,
  type IndexStep,
  isUnrecoverable,
  type NewFailure,
} from '../../store/ledger/index-ledger.ts';
import { createPause, untilLater } from '../work.ts';
import type { ContractRegistry } from './contract-registry.ts';
import { NodeError, problemKindOf, reasonOf } from './faults.ts';
import { mergePending, type Span, without } from './pending-ranges.ts';
import { MAX_AHEAD_MS, repairDelay, retryDelay, type WorkerTiming } from './timing.ts';

export interface ProgressOptions {
  readonly network: Network;
  readonly ledger: IndexLedger;
  /** Who holds the network's lease. */
  readonly holder: string;
  readonly timing: WorkerTiming;
  readonly writeLog: WriteLog;
}

export type Progress = ReturnType<typeof createProgress>;

/** @param registry of the chain family, which knows what the contracts are */
export function createProgress(options: ProgressOptions, registry: ContractRegistry) {
  const { network, ledger, timing, writeLog } = options;
  const { selector } = network;
  const log = (line: string, level: LogLineLevel = 'info') =>
    writeLog(line, { level, network: network.name });
  const problem = createNetworkProblem(timing.escalateAfterMs, log);
  const head = createChainHead(selector);
  const recorder = createRecorder(options, head, registry, problem);
  return { selector, ledger, timing, head, registry, recorder, problem, log } as const;
}

/**
 * Runs rounds until the signal, with backoff after those that fail. Throws what cannot be retried: a lost lease, or a newer
 * schema.
 *
 * @param failed called after a failure, for how many there were in a row
 */
export async function runRounds(
  { problem, timing }: Progress,
  signal: AbortSignal,
  round: () => Promise<void>,
  failed: () => number | Promise<number>,
): Promise<void> {
  while (!signal.aborted) {
    try {
      await round();
    } catch (error) {
      if (signal.aborted) return;
      if (isUnrecoverable(error)) throw error;
      problem.set(error);
      await untilLater(retryDelay(await failed(), timing), signal);
    }
  }
}

/**
 * The problem that keeps a network from progress at present: published, logged once, and logged as an error when it has
 * lasted for `escalateAfterMs`.
 */
function createNetworkProblem(escalateAfterMs: number, log: (line: string, level?: LogLineLevel) => void) {
  interface Problem {
    /** For the operator: it may name hosts. */
    readonly text: string;
    readonly kind: ProblemKind;
    /** On performance.now()'s clock. */
    readonly since: number;
    readonly isEscalated: boolean;
  }
  let current: Problem | null = null;
  const lastedMs = () => (current === null ? 0 : performance.now() - current.since);
  const duration = () => `${Math.round(lastedMs() / 1000)} s`;
  return {
    get current(): Pick<Problem, 'text' | 'kind'> | null {
      return current;
    },
    set(error: unknown): void {
      const text = reasonOf(error);
      const kind = problemKindOf(error);
      // Faults of endpoints were logged when the endpoints were set back.
      if (current === null && !(error instanceof NodeError))
        log(text, operatorProblems.has(kind) ? 'error' : 'warn');
      const { since = performance.now(), isEscalated = false } = current ?? {};
      const escalates = !isEscalated && lastedMs() >= escalateAfterMs;
      if (escalates)
        log(`Nothing could be read for ${duration()}; still retrying. Last problem: ${text}`, 'error');
      current = { text, kind, since, isEscalated: isEscalated || escalates };
    },
    clear(): void {
      if (current?.isEscalated) log(`Reading goes on, after ${duration()}`);
      current = null;
    },
  };
}

/**
 * The state of the head of a network: the newest block, the blocks that may still be abandoned, and where its history begins.
 *
 * @param network selector
 */
function createChainHead(network: string) {
  const state = {
    /** Of the newest block; null until the chain was asked. */
    stats: null as HeadStats | null,
    /** No block that was read has a later time, in milliseconds since 1970. */
    latestAt: Date.now() + MAX_AHEAD_MS,
    /**
     * Blocks that may be abandoned, by height, above the newest that is final. The newest blocks are all there; further
     * down, where history is read above the final block, only those in which something was found. Empty where nothing has
     * been read.
     */
    held: [] as readonly BlockId[],
    get final(): BlockId | undefined {
      return this.held[0];
    },
    get tip(): BlockId | undefined {
      return this.held.at(-1);
    },
    /** The first block of the history; null until it is known. */
    startBlock: null as number | null,
  };
  /** Change whenever blocks, or blocks that were final, are abandoned. */
  let forks = 0;
  let finalForks = 0;
  const mark = () => ({ forks, finalForks });

  /** An observation that is not an event of the chain: it depends on a block, and was made at the head's time. */
  const observedAt = (block: BlockId): Observation => ({
    network,
    blockNumber: block.number,
    blockHash: block.hash,
    transactionHash: null,
    logIndex: null,
    at: new Date(state.stats?.headAt ?? 0).toISOString(),
  });

  return Object.assign(state as Readonly<typeof state>, {
    load({ blocks, startBlock: stored, head }: IndexState): void {
      state.held = blocks;
      state.startBlock = stored;
      // What was read after the head was published is not known to be earlier.
      if (head && head.number >= (state.tip?.number ?? 0)) state.latestAt = head.at;
    },
    set(newStats: HeadStats): void {
      state.stats = newStats;
      state.latestAt = newStats.headAt;
    },
    /** Repeats in memory what the store has recorded. */
    apply({ orphaned = [], blocks = [], forgetBelow = 0, startBlock: newStart }: IndexStep): void {
      const gone = new Set(orphaned);
      if (gone.size > 0) forks++;
      if (state.final && gone.has(state.final.hash)) finalForks++;
      const kept = state.held.filter(({ hash }) => !gone.has(hash));
      const stays = new Map(kept.map((block) => [block.number, block]));
      for (const { number, hash } of blocks) stays.set(number, { number, hash });
      state.held = [...stays.values()]
        .filter(({ number }) => number >= forgetBelow)
        .sort((a, b) => a.number - b.number);
      state.startBlock = newStart ?? state.startBlock;
    },
    /** A moment before blocks are read: blocks abandoned since then decide whether the reading holds. */
    mark,
    /** Whether blocks that were read since the mark may have been abandoned meanwhile. */
    isStale: (since: ReturnType<typeof mark>, isFinal: boolean) =>
      since.finalForks !== finalForks || (!isFinal && since.forks !== forks),
    /** Finality depends on the block of the send: it is taken back together with it. */
    sourceFinalized: (messageId: string, sentIn: BlockId): SourceFinalized => ({
      kind: 'SourceFinalized',
      messageId,
      seen: observedAt(sentIn),
    }),
    observedAt,
  });
}

/** Blocks that were read without these contracts. Those of them that are still on the backlog need no second reading. */
interface Rescan {
  readonly contracts: readonly string[];
  readonly spans: readonly Span[];
}

export interface Step extends IndexStep {
  readonly rescans?: readonly Rescan[];
}

/** A moment before blocks are read: what happened since decides whether the reading holds. */
export type ReadMark = ReturnType<Progress['recorder']['mark']>;

/**
 * The recorder of a network's steps, the only way forward: steps are recorded one after the other, each made from what
 * the one before has left behind. The head, the contract registry and the counts in memory repeat what the store has
 * acknowledged.
 */
function createRecorder(
  { network, ledger, holder, timing }: ProgressOptions,
  head: Progress['head'],
  registry: ContractRegistry,
  problem: ReturnType<typeof createNetworkProblem>,
) {
  const { selector } = network;
  const state = {
    counts: { created: 0, updated: 0, removed: 0 },
    /** As of the latest `publish`. */
    backlog: { owedBlocks: 0, failedRanges: 0 } as BacklogStats,
    /** Changes whenever ranges are added to the backlog, or dropped from its end; `backlogPause` is then woken. */
    backlogVersion: 0,
  };
  const backlogPause = createPause();
  /** On performance.now()'s clock, which never goes back: others take a silent worker for a dead one. */
  let publishedAt = Number.NEGATIVE_INFINITY;
  let recording: Promise<void> = Promise.resolve();

  /** The step with its rescans as pending ranges, without what is on the backlog, merged with those on it. */
  const withRescans = async ({ rescans = [], ...step }: Step): Promise<IndexStep> => {
    if (rescans.length === 0) return step;
    const { done, pending: added = [] } = step;
    const rows = (await ledger.pendingRanges(selector))
      .map((row) => (row.id === done?.id ? { ...row, to: done.from - 1 } : row))
      .filter(({ from, to }) => from <= to);
    const history = [...rows, ...added].filter(({ purpose }) => purpose === 'history');
    const ranges = rescans.flatMap(({ contracts: wanted, spans }) => {
      const contracts = registry.rescanned(wanted);
      const unread = spans.flatMap((span) => without(span, history));
      return unread.map((span): BlockRange => ({ ...span, purpose: 'contracts', contracts }));
    });
    return { ...step, ...mergePending(rows, [...added, ...ranges]) };
  };

  const recordNow = async (makeStep: () => Step | Promise<Step>): Promise<void> => {
    const step = await withRescans(await makeStep());
    const { created, updated, removed } = await ledger.record(selector, holder, step);
    const { counts } = state;
    state.counts = {
      created: counts.created + created,
      updated: counts.updated + updated,
      removed: counts.removed + removed,
    };
    registry.forget(step.orphaned ?? []);
    registry.add(step.contracts ?? []);
    head.apply(step);
    if ((step.pending ?? []).length === 0 && step.endsAt === undefined) return;
    state.backlogVersion++;
    backlogPause.wake();
  };

  /** Stores the progress for others to see, and learns how much is pending. */
  const publish = async () => {
    publishedAt = performance.now();
    state.backlog = await ledger.reportProgress(selector, head.stats, problem.current);
  };

  return Object.assign(state as Readonly<typeof state>, {
    backlogPause,
    mark: () => ({ ...head.mark(), contracts: registry.mark }),
    /**
     * Records a step. `makeStep` is called when its turn has come: a contract that one loop has just learned of cannot
     * slip past the blocks that the other loop is reading.
     */
    record(makeStep: () => Step | Promise<Step>): Promise<void> {
      const recorded = recording.then(() => recordNow(makeStep));
      recording = recorded.catch(() => undefined);
      return recorded;
    },
    /** What was read before these contracts were known, up to `readTo` and except `covered`, is read again for them. */
    rescansFor(contracts: readonly string[], readTo: number, covered?: Span): readonly Rescan[] {
      if (contracts.length === 0) return [];
      const spans = without({ from: head.startBlock ?? 0, to: readTo }, covered ? [covered] : []);
      return [{ contracts, spans }];
    },
    /** Blocks that were being read while the other loop learned of more contracts are read again for those. */
    rescansSince(mark: { readonly contracts: number }, span: Span): readonly Rescan[] {
      const contracts = registry.since(mark.contracts);
      return contracts.length === 0 ? [] : [{ contracts, spans: [span] }];
    },
    /** A range for the ledger of failures. */
    failureOf({ from, to, purpose, contracts }: BlockRange, reason: string): NewFailure {
      return { from, to, purpose, contracts, reason, retryInMs: repairDelay(1, timing) };
    },
    async publishWhenDue() {
      if (performance.now() - publishedAt >= timing.publishEveryMs) await publish();
    },
    publish,
  });
}
