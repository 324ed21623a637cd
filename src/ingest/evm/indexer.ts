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
import { SchemaMovedError } from '../../store/writer-guard.ts';
import { untilLater } from '../work.ts';
import type { WorkerPace } from './pace.ts';
import { createChain } from './rpc/chain.ts';
import type { EndpointTiming } from './rpc/endpoint.ts';
import type { NetworkSource } from './source.ts';
import { NetworkWorker, type WorkerStatus } from './worker.ts';

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
  /** Whether another one has it, as far as we know. */
  readonly isTaken: boolean;
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
  const loops = options.sources.map(async (source) => {
    try {
      await keepIndexing(source, { ...options, signal }, workers);
    } catch (error) {
      // What ends one network for good (a newer schema) ends them all.
      finished.abort();
      throw error;
    }
  });
  const statuses = () =>
    options.sources.map(({ network }) => {
      const { worker, state } = workers.get(network.selector) ?? {};
      return { network, isOurs: state === 'working', isTaken: state === 'waiting', worker: worker?.status };
    });
  const watch = async () => {
    const isFinished = createFinish();
    while (!signal.aborted) {
      await untilLater(ONCE_LOOK_MS, signal);
      if (isFinished(statuses())) finished.abort();
    }
  };
  const all = [...loops, ...(options.once ? [watch()] : [])];
  const ended = Promise.all(all)
    .then(() => undefined)
    .finally(() => Promise.allSettled(all));
  return { statuses, ended };
}

/**
 * Tells when all networks have been read up to where their heads were at some moment; on a chain that grows all the
 * time there is no other end. Behind that moment each network has also asked what the others want to know of it.
 */
function createFinish(): (statuses: readonly NetworkStatus[]) => boolean {
  const caughtUpAt = new Map<Network, number>();
  return (statuses) => {
    for (const { network, isOurs, worker } of statuses) {
      if (!isOurs) caughtUpAt.delete(network);
      else if (worker?.isUpToDate && !caughtUpAt.has(network)) caughtUpAt.set(network, performance.now());
    }
    const last = Math.max(...caughtUpAt.values());
    return (
      caughtUpAt.size === statuses.length && statuses.every(({ worker }) => (worker?.askedAt ?? -1) > last)
    );
  };
}

type Workers = Map<
  string,
  { readonly worker?: NetworkWorker | undefined; readonly state: 'working' | 'waiting' | 'stopped' }
>;

async function keepIndexing(source: NetworkSource, options: IndexerOptions, workers: Workers): Promise<void> {
  const { store, signal, notice, pace = {} } = options;
  const { selector, name } = source.network;
  const seconds = pace.lease ?? LEASE_SECONDS;
  const holder = randomUUID();
  let isWaiting = false;
  let isTroubled = false;
  while (!signal.aborted) {
    try {
      if (!(await store.index.lease(selector, holder, seconds))) {
        if (!isWaiting) notice(`${name}: another indexer works on it; waiting`);
        isWaiting = true;
        workers.set(selector, { ...workers.get(selector), state: 'waiting' });
        await untilLater(pace.leaseLook ?? LEASE_LOOK_MS, signal);
        continue;
      }
      if (isWaiting) notice(`${name}: taken over`);
      isWaiting = false;
      await workWithLease(source, options, holder, seconds, workers);
      isTroubled = false;
    } catch (error) {
      if (signal.aborted) break;
      if (error instanceof SchemaMovedError) throw error;
      if (error instanceof LeaseLost) {
        notice(`${name}: ${error.message}`);
        continue;
      }
      // The database is away, as a rule. What it has not acknowledged is done again.
      if (!isTroubled) notice(`${name}: ${(error as Error).message}; trying again`);
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
  workers.set(selector, { worker, state: 'working' });
  try {
    await worker.run();
    if (lost.signal.aborted) throw new LeaseLost('Another indexer works on this network now');
  } finally {
    clearInterval(renewal);
    workers.set(selector, { worker, state: 'stopped' });
    chain.close();
    await store.index.release(selector, holder).catch(() => undefined);
  }
}
