/**
 * All networks of the configuration, each worked by one indexer at a time, however many run.
 *
 * A lease in the database says who. It is renewed while the worker lives; when that dies, the lease runs out within
 * seconds and whoever waits takes over where it was.
 */
import { randomUUID } from 'node:crypto';
import type { Network } from '../../domain/networks.ts';
import { LeaseLost } from '../../store/index-ledger.ts';
import type { Store } from '../../store/store.ts';
import { untilLater } from '../work.ts';
import { createChain } from './rpc/chain.ts';
import type { EndpointTiming } from './rpc/endpoint.ts';
import type { NetworkSource } from './source.ts';
import { NetworkWorker, type WorkerPace, type WorkerStatus } from './worker.ts';

export interface IndexerOptions {
  readonly sources: readonly NetworkSource[];
  readonly store: Pick<Store, 'index' | 'findMessage'>;
  readonly signal: AbortSignal;
  readonly userAgent: string;
  readonly notice: (line: string) => void;
  /** Ends when all networks have been read up to their heads, instead of following for ever. */
  readonly once?: boolean;
  readonly pace?: Partial<IndexerPace>;
}

export interface IndexerPace extends WorkerPace {
  /** Seconds. */
  readonly lease: number;
  /** Milliseconds between two looks at a lease that somebody else has. */
  readonly leaseLook: number;
  readonly endpoints: Partial<EndpointTiming>;
}

const LEASE_SECONDS = 9;
const LEASE_LOOK_MS = 1_000;
/** Milliseconds behind a failure that is not the network's: the database is away, say. */
const REST_MS = 1_000;
const ONCE_LOOK_MS = 50;

export interface NetworkStatus {
  readonly network: Network;
  /** Whether this indexer works on it, and not another one. */
  readonly isOurs: boolean;
  /** The latest word of our own worker, where there was one. */
  readonly worker: WorkerStatus | undefined;
}

export interface Indexer {
  statuses(): readonly NetworkStatus[];
  /** Resolves when it has ended. */
  readonly ended: Promise<void>;
}

export function startIndexer(options: IndexerOptions): Indexer {
  const finished = new AbortController();
  const signal = AbortSignal.any([options.signal, finished.signal]);
  const workers: Workers = new Map();
  const loops = options.sources.map((source) => keepIndexing(source, { ...options, signal }, workers));
  const statuses = () =>
    options.sources.map(({ network }) => {
      const { worker, isWorking = false } = workers.get(network.selector) ?? {};
      return { network, isOurs: isWorking, worker: worker?.status };
    });
  const watch = async () => {
    while (!signal.aborted) {
      await untilLater(ONCE_LOOK_MS, signal);
      if (isAllDone(statuses())) finished.abort();
    }
  };
  const ended = Promise.all([...loops, ...(options.once ? [watch()] : [])]).then(() => undefined);
  return { statuses, ended };
}

/** Also what one network has asked of another: everybody has looked for questions since the last word of anybody. */
function isAllDone(statuses: readonly NetworkStatus[]): boolean {
  const workers = statuses.flatMap(({ isOurs, worker }) => (isOurs && worker?.isUpToDate ? [worker] : []));
  const recordedAt = Math.max(...workers.map((worker) => worker.recordedAt));
  return workers.length === statuses.length && workers.every(({ idleAt }) => idleAt > recordedAt);
}

type Workers = Map<string, { readonly worker: NetworkWorker; readonly isWorking: boolean }>;

async function keepIndexing(source: NetworkSource, options: IndexerOptions, workers: Workers): Promise<void> {
  const { store, signal, notice, pace = {} } = options;
  const { selector, displayName } = source.network;
  const seconds = pace.lease ?? LEASE_SECONDS;
  const holder = randomUUID();
  let isWaiting = false;
  let isTroubled = false;
  while (!signal.aborted) {
    try {
      if (!(await store.index.lease(selector, holder, seconds))) {
        if (!isWaiting) notice(`${displayName}: another indexer works on it; waiting`);
        isWaiting = true;
        await untilLater(pace.leaseLook ?? LEASE_LOOK_MS, signal);
        continue;
      }
      if (isWaiting) notice(`${displayName}: taken over`);
      isWaiting = false;
      await workWithLease(source, options, holder, seconds, workers);
      isTroubled = false;
    } catch (error) {
      if (signal.aborted) break;
      if (error instanceof LeaseLost) {
        notice(`${displayName}: ${error.message}`);
        continue;
      }
      // The database is away, as a rule. What it has not acknowledged is done again.
      if (!isTroubled) notice(`${displayName}: ${(error as Error).message}; trying again`);
      isTroubled = true;
      await untilLater(REST_MS, signal);
    }
  }
}

/** Works while the lease holds; a renewal that comes too late ends the work. */
async function workWithLease(
  source: NetworkSource,
  { store, signal, notice, userAgent, pace }: IndexerOptions,
  holder: string,
  seconds: number,
  workers: Workers,
): Promise<void> {
  const { selector } = source.network;
  const lost = new AbortController();
  const working = AbortSignal.any([signal, lost.signal]);
  const chain = createChain(source, {
    userAgent,
    signal: working,
    notice,
    ...(pace?.endpoints && { timing: pace.endpoints }),
  });
  const worker = new NetworkWorker({
    source,
    chain,
    store,
    holder,
    signal: working,
    notice,
    userAgent,
    ...(pace && { pace }),
  });
  let renewedAt = performance.now();
  const renewal = setInterval(
    async () => {
      const askedAt = performance.now();
      const isHeld = await store.index.lease(selector, holder, seconds).catch(() => undefined);
      if (isHeld) renewedAt = askedAt;
      if (isHeld === false || performance.now() - renewedAt > seconds * 1000) lost.abort();
    },
    (seconds * 1000) / 3,
  );
  workers.set(selector, { worker, isWorking: true });
  try {
    await worker.run();
    if (lost.signal.aborted) throw new LeaseLost('Another indexer works on this network now');
  } finally {
    clearInterval(renewal);
    workers.set(selector, { worker, isWorking: false });
    chain.close();
    await store.index.release(selector, holder).catch(() => undefined);
  }
}
