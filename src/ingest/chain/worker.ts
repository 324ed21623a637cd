/**
 * The worker of one network: begins where the store stands, then runs two loops that share its progress.
 *
 * The follow loop takes the newest blocks as they come; the history loop reads what is behind them and retries what has
 * failed. Every step is one transaction of the store, so that the worker can be killed at any moment and continues.
 */
import type { Network } from '../../domain/networks.ts';
import {
  type BlockRange,
  type HeadFigures,
  type IndexLedger,
  type IndexState,
  isUnrecoverable,
} from '../../store/ledger/index-ledger.ts';
import { untilLater } from '../work.ts';
import type { NetworkReader, NetworkSource } from './family.ts';
import { FollowLoop } from './follow-loop.ts';
import { HistoryLoop } from './history-loop.ts';
import { historyRange, type Progress } from './progress.ts';
import { retryDelay, type WorkerTiming } from './timing.ts';

export interface WorkerOptions {
  readonly source: NetworkSource;
  readonly ledger: IndexLedger;
  readonly reader: NetworkReader;
  readonly progress: Progress;
  readonly timing: WorkerTiming;
  readonly signal: AbortSignal;
}

/** What there is to know of a worker from outside. */
export interface WorkerStatus {
  readonly network: Network;
  readonly figures: HeadFigures | null;
  /** Where history begins; null while it is being looked for. */
  readonly startBlock: number | null;
  /** Blocks of history that are still to be read. */
  readonly owedBlocks: number;
  readonly isSearchingRouters: boolean;
  readonly created: number;
  readonly updated: number;
  readonly removed: number;
  readonly failedRanges: number;
  readonly problem: string | null;
  /** All blocks have been read, or are on the ledger of failures. */
  readonly isUpToDate: boolean;
  /** When the latest complete round of chores began, on performance.now()'s clock. */
  readonly choresBegunAt: number;
}

export class NetworkWorker {
  readonly #options: WorkerOptions;
  readonly #followLoop: FollowLoop;
  readonly #historyLoop: HistoryLoop;

  constructor(options: WorkerOptions) {
    this.#options = options;
    const { source, ledger, reader, progress, timing } = options;
    this.#followLoop = new FollowLoop({ reader, progress, timing, pollEvery: source.pollEvery });
    this.#historyLoop = new HistoryLoop({
      selector: source.network.selector,
      ledger,
      reader,
      progress,
      timing,
      startsWithRouters: source.start === null,
    });
  }

  get status(): WorkerStatus {
    const { source, progress } = this.#options;
    const { figures, startBlock, counts, owed, problem } = progress;
    const { isAtHead, choresBegunAt } = this.#followLoop;
    const { isEmpty, isSearchingRouters } = this.#historyLoop;
    return {
      network: source.network,
      figures,
      startBlock,
      ...owed,
      isSearchingRouters,
      ...counts,
      problem,
      isUpToDate: isAtHead && isEmpty,
      choresBegunAt,
    };
  }

  /** Works until the signal, or until what ends the work is thrown: a lost lease, or a newer schema. */
  async run(): Promise<void> {
    const { source, ledger, reader, progress } = this.#options;
    const stop = new AbortController();
    const signal = AbortSignal.any([this.#options.signal, stop.signal]);
    const state = await ledger.state(source.network.selector);
    progress.load(state);
    reader.load(state);
    await this.#untilDone(signal, () => this.#begin(state));
    if (signal.aborted) return;
    try {
      // How much an earlier worker has left behind is known from the start.
      await progress.publish();
      const loops = [this.#followLoop.run(signal), this.#historyLoop.run(signal)];
      // The first that fails stops the other; both have ended when this returns.
      await Promise.all(
        loops.map((loop) =>
          loop.catch((error: unknown) => {
            stop.abort();
            throw error;
          }),
        ),
      ).finally(() => Promise.allSettled(loops));
    } finally {
      await progress.publish().catch(() => undefined);
    }
  }

  /** Records what the configuration asks for and the store does not have yet. */
  async #begin(state: IndexState): Promise<void> {
    const { reader, progress } = this.#options;
    const { final, start, newRouters, contracts, refused } = await reader.begin();
    progress.noticeRefused({ refused });

    const owed: BlockRange[] = [];
    const isNew = state.followedFrom === null;
    const read = isNew ? final.number : (progress.tip?.number ?? final.number);
    if (newRouters.length > 0) {
      // Everything that a router ever registered is trusted, even if that was long before the wanted history.
      owed.push({ from: 0, to: read, purpose: 'routers', contracts: newRouters });
    }
    if (isNew) {
      if ((start ?? 0) <= final.number) owed.push(historyRange(start ?? 0, final.number));
    } else {
      owed.push(...progress.owedFor(contracts, read));
      const before = state.startBlock;
      if (start !== undefined && before !== null && start < before) {
        owed.push(historyRange(start, before - 1));
      }
    }
    const isEarlier = start !== undefined && (state.startBlock === null || start < state.startBlock);
    await progress.record(() => ({
      contracts,
      owed,
      rereadUnreadable: true,
      ...(isEarlier && { startBlock: start }),
      ...(isNew && { followedFrom: final.number, blocks: [final] }),
    }));
  }

  /** Retries until it succeeds: at the start nothing else can be done. */
  async #untilDone(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    const { progress, timing } = this.#options;
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        await work();
        progress.clearProblem();
        return;
      } catch (error) {
        if (signal.aborted || isUnrecoverable(error)) throw error;
        progress.setProblem(error);
        await progress.publish().catch(() => undefined);
        await untilLater(retryDelay(failures, timing), signal);
      }
    }
  }
}
