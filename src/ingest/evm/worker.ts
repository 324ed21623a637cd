/**
 * One network's worker: begins where the store stands, then runs two loops that share its progress.
 *
 * The follower takes the newest blocks as they come, the backlog reads history behind them and sees to what has failed.
 * Every step is one transaction of the store, so that the worker can be killed at any moment and goes on where it was.
 */
import type { Network } from '../../domain/networks.ts';
import {
  type BlockRange,
  endsWork,
  type HeadFigures,
  type IndexLedger,
  type IndexState,
} from '../../store/index-ledger.ts';
import type { Store } from '../../store/store.ts';
import { untilLater } from '../work.ts';
import { Backlog } from './backlog.ts';
import type { Block, Chain, ChainNode } from './chain.ts';
import { createChores } from './chores.ts';
import { createDecoder } from './decode/decoder.ts';
import { HeadFollower } from './follower.ts';
import { retryIn, usualPace, type WorkerPace } from './pace.ts';
import { historyRange, Progress } from './progress.ts';
import { type BlockReader, createBlockReader } from './reading.ts';
import type { NetworkSource } from './source.ts';
import { blockAtTime } from './start-block.ts';
import { createVerifierResults } from './verifier-results.ts';

export interface WorkerOptions {
  readonly source: NetworkSource;
  readonly chain: Chain;
  readonly store: Pick<Store, 'index' | 'findMessage'>;
  readonly holder: string;
  readonly signal: AbortSignal;
  readonly notice: (line: string) => void;
  readonly userAgent: string;
  readonly pace?: Partial<WorkerPace>;
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
  /** When it last began to ask all that there was to ask, on performance.now()'s clock. */
  readonly askedAt: number;
}

export class NetworkWorker {
  readonly #source: NetworkSource;
  readonly #chain: Chain;
  readonly #ledger: IndexLedger;
  readonly #signal: AbortSignal;
  readonly #pace: WorkerPace;
  readonly #progress: Progress;
  readonly #reader: BlockReader;
  readonly #follower: HeadFollower;
  readonly #backlog: Backlog;

  constructor({ source, chain, store, holder, signal, notice, userAgent, pace }: WorkerOptions) {
    const { network, verifierResults } = source;
    this.#source = source;
    this.#chain = chain;
    this.#ledger = store.index;
    this.#signal = signal;
    this.#pace = { ...usualPace, ...pace };
    this.#progress = new Progress({ network, ledger: store.index, holder, pace: this.#pace, notice });
    this.#reader = createBlockReader(chain, this.#progress.book, createDecoder(network));
    const parts = {
      source,
      chain,
      ledger: store.index,
      reader: this.#reader,
      progress: this.#progress,
      pace: this.#pace,
    };
    const results = verifierResults && createVerifierResults(verifierResults, { userAgent, signal });
    this.#follower = new HeadFollower({ ...parts, store, chores: createChores(results, this.#pace) });
    this.#backlog = new Backlog(parts);
  }

  get status(): WorkerStatus {
    const { figures, startBlock, counts, owed, problem } = this.#progress;
    const { isAtHead, askedAt } = this.#follower;
    const { isEmpty, isSearchingRouters } = this.#backlog;
    return {
      network: this.#source.network,
      figures,
      startBlock,
      ...owed,
      isSearchingRouters,
      ...counts,
      problem,
      isUpToDate: isAtHead && isEmpty,
      askedAt,
    };
  }

  /** Works until the signal, or until the network is lost to another worker (LeaseLost). */
  async run(): Promise<void> {
    const stop = new AbortController();
    const signal = AbortSignal.any([this.#signal, stop.signal]);
    const { network, routers } = this.#source;
    const state = await this.#ledger.state(network.selector);
    this.#progress.load(state, routers);
    await this.#untilDone(signal, () => this.#begin(state));
    if (signal.aborted) return;
    try {
      // How much an earlier worker has left behind is known from the start.
      await this.#progress.tell();
      const loops = [this.#follower.run(signal), this.#backlog.run(signal)];
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
      await this.#progress.tell().catch(() => undefined);
    }
  }

  /** What the configuration asks for and the store does not have yet. */
  async #begin(state: IndexState): Promise<void> {
    const progress = this.#progress;
    const strangers = this.#source.routers.filter((router) => !progress.book.contracts.has(router));
    const { final, start, current } = await this.#chain.run(async (node) => {
      const head = await node.head();
      return {
        final: await node.finalized(head),
        start: await this.#startBlock(node, head),
        current: strangers.length === 0 ? undefined : await this.#reader.readCurrent(node, strangers),
      };
    });
    if (current) progress.noticeRefused(current);

    const contracts = current?.contracts ?? [];
    const owed: BlockRange[] = [];
    const isNew = state.followedFrom === null;
    const read = isNew ? final.number : (progress.tip?.number ?? final.number);
    if (strangers.length > 0) {
      // All that a router ever named speaks with its authority, even if it was long before the history that is wanted.
      owed.push({ from: 0, to: read, purpose: 'routers', contracts: strangers });
    }
    if (isNew) {
      if ((start ?? 0) <= final.number) {
        owed.push(historyRange(start ?? 0, final.number));
      }
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

  async #startBlock(node: ChainNode, head: Block): Promise<number | undefined> {
    const { start } = this.#source;
    if (start === null) return undefined;
    return 'block' in start ? start.block : blockAtTime(node, start.time, head);
  }

  /** Tries until it succeeds: at the start nothing else can be done. */
  async #untilDone(signal: AbortSignal, work: () => Promise<void>): Promise<void> {
    for (let failures = 1; !signal.aborted; failures++) {
      try {
        await work();
        this.#progress.endProblem();
        return;
      } catch (error) {
        if (signal.aborted || endsWork(error)) throw error;
        this.#progress.tellProblem(error);
        await this.#progress.tell().catch(() => undefined);
        await untilLater(retryIn(failures, this.#pace), signal);
      }
    }
  }
}
