/**
 * The recorder of a network's steps, the only way forward: steps are recorded one after the other, each made from what
 * the one before has left behind.
 *
 * The head, the contract registry and the counts in memory repeat what the store has acknowledged.
 */
import type {
  BacklogStats,
  BlockRange,
  IndexLedger,
  IndexStep,
  NewFailure,
} from '../../store/ledger/index-ledger.ts';
import { createPause, type Pause } from '../work.ts';
import type { ChainHead, ForkMark } from './chain-head.ts';
import type { ContractRegistry } from './contract-registry.ts';
import type { NetworkProblem } from './network-problem.ts';
import { mergePending, type Span, without } from './pending-ranges.ts';
import { repairDelay, type WorkerTiming } from './timing.ts';

/** Blocks that were read without these contracts. Those of them that are still on the backlog need no second reading. */
export interface Rescan {
  readonly contracts: readonly string[];
  readonly spans: readonly Span[];
}

export interface Step extends IndexStep {
  readonly rescans?: readonly Rescan[];
}

/** A moment before blocks are read: what happened since decides whether the reading holds. */
export interface ReadMark extends ForkMark {
  readonly contracts: number;
}

export interface Recorder {
  readonly counts: { readonly created: number; readonly updated: number; readonly removed: number };
  /** As of the latest `publish`. */
  readonly backlog: BacklogStats;
  /** Changes whenever ranges are added to the backlog, or dropped from its end; `backlogPause` is then woken. */
  readonly backlogVersion: number;
  readonly backlogPause: Pause;
  mark(): ReadMark;
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
  publishWhenDue(): Promise<void>;
  /** Stores the progress for others to see, and learns how much is pending. */
  publish(): Promise<void>;
}

export interface RecorderOptions {
  /** CCIP's number for the network. */
  readonly selector: string;
  readonly ledger: IndexLedger;
  /** Who holds the network's lease. */
  readonly holder: string;
  readonly timing: WorkerTiming;
  readonly head: ChainHead;
  readonly registry: ContractRegistry;
  readonly problem: NetworkProblem;
}

export function createRecorder(options: RecorderOptions): Recorder {
  const { selector, ledger, holder, timing, head, registry, problem } = options;
  let counts = { created: 0, updated: 0, removed: 0 };
  let backlog: BacklogStats = { owedBlocks: 0, failedRanges: 0 };
  let backlogVersion = 0;
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
    const ranges = rescans.flatMap(({ contracts, spans }) =>
      spans
        .flatMap((span) => without(span, history))
        .map(
          (span): BlockRange => ({ ...span, purpose: 'contracts', contracts: registry.rescanned(contracts) }),
        ),
    );
    return { ...step, ...mergePending(rows, [...added, ...ranges]) };
  };

  const record = async (makeStep: () => Step | Promise<Step>): Promise<void> => {
    const step = await withRescans(await makeStep());
    const { created, updated, removed } = await ledger.record(selector, holder, step);
    counts = {
      created: counts.created + created,
      updated: counts.updated + updated,
      removed: counts.removed + removed,
    };
    registry.forget(step.orphaned ?? []);
    registry.add(step.contracts ?? []);
    head.apply(step);
    if ((step.pending ?? []).length === 0 && step.endsAt === undefined) return;
    backlogVersion++;
    backlogPause.wake();
  };

  const publish = async () => {
    publishedAt = performance.now();
    backlog = await ledger.reportProgress(selector, head.stats, problem.current);
  };

  return {
    get counts() {
      return counts;
    },
    get backlog() {
      return backlog;
    },
    get backlogVersion() {
      return backlogVersion;
    },
    backlogPause,
    mark: () => ({ ...head.mark(), contracts: registry.mark }),
    record(makeStep) {
      const recorded = recording.then(() => record(makeStep));
      recording = recorded.catch(() => undefined);
      return recorded;
    },
    rescansFor(contracts, readTo, covered) {
      if (contracts.length === 0) return [];
      const spans = without({ from: head.startBlock ?? 0, to: readTo }, covered ? [covered] : []);
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
    async publishWhenDue() {
      if (performance.now() - publishedAt >= timing.publishEveryMs) await publish();
    },
    publish,
  };
}
