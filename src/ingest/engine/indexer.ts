/**
 * The indexer: one worker for each configured network, under a lease.
 *
 * The lease is a row in the database, renewed while the worker lives. When a worker dies, its lease expires within
 * seconds, and another indexer that waits for it continues. So any number of indexers may run.
 */
import { randomUUID } from 'node:crypto';
import { setMaxListeners } from 'node:events';
import type { WriteLog } from '../../base/log.ts';
import type { Network } from '../../domain/networks/networks.ts';
import { LeaseLostError } from '../../store/ledger/index-ledger.ts';
import { SchemaMovedError } from '../../store/schema/writer-guard.ts';
import type { Store } from '../../store/store.ts';
import { untilLater } from '../work.ts';
import type { ConnectOptions, NetworkReader, NetworkSource } from './family.ts';
import type { EndpointTiming } from './json-rpc/endpoint.ts';
import { defaultTiming, type WorkerTiming } from './timing.ts';
import { createNetworkWorker, type NetworkWorker } from './worker.ts';

export type ConnectNetwork = (source: NetworkSource, options: ConnectOptions) => Promise<NetworkReader>;

export interface IndexerOptions {
  readonly sources: readonly NetworkSource[];
  readonly connect: ConnectNetwork;
  readonly store: Pick<Store, 'index' | 'findMessage'>;
  readonly signal: AbortSignal;
  readonly userAgent: string;
  readonly writeLog: WriteLog;
  /**
   * Ends when all networks have been read up to their heads, instead of following for ever. A network that cannot go on
   * (`stuckBecause`) is not waited for.
   */
  readonly once?: boolean;
  readonly timing?: Partial<IndexerTiming>;
}

export interface IndexerTiming extends WorkerTiming {
  readonly leaseSeconds: number;
  /** Between two looks at a lease that another indexer holds. */
  readonly leasePollMs: number;
  readonly endpoints: Partial<EndpointTiming>;
}

const LEASE_SECONDS = 9;
const LEASE_POLL_MS = 1_000;
/** Pause after a failure that is not the network's: the database is away, say. */
const RETRY_MS = 1_000;
const ONCE_POLL_MS = 50;

export interface NetworkStatus {
  readonly network: Network;
  /** Whether this indexer works on it, and not another one. */
  readonly isOurs: boolean;
  /** Whether another indexer has it, as far as is known. */
  readonly isTaken: boolean;
  /** The latest status of our own worker, where there was one. */
  readonly worker: NetworkWorker['status'] | undefined;
}

/** `ended` resolves when it has ended. */
export function startIndexer(options: IndexerOptions) {
  const finished = new AbortController();
  const signal = AbortSignal.any([options.signal, finished.signal]);
  // Each network that waits for its lease listens; there may be many.
  setMaxListeners(0, signal);
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
  const statuses = (): readonly NetworkStatus[] =>
    options.sources.map(({ network }) => {
      const { worker, state } = workers.get(network.selector) ?? {};
      return { network, isOurs: state === 'working', isTaken: state === 'waiting', worker: worker?.status };
    });
  const watch = async () => {
    const judge = createFinish();
    while (!signal.aborted) {
      await untilLater(ONCE_POLL_MS, signal);
      const judgement = judge(statuses());
      if (judgement === 'finished') finished.abort();
      if (judgement === 'caught up') for (const { worker } of workers.values()) worker?.runNow();
    }
  };
  const all = [...loops, ...(options.once ? [watch()] : [])];
  const ended = Promise.all(all)
    .then(() => undefined)
    .finally(() => Promise.allSettled(all));
  return { statuses, ended };
}

/**
 * Decides when all networks have been read up to where their heads were at some moment; on a chain that grows all the
 * time there is no other end. After that moment each network has to do its tasks once more, for they answer what the
 * others ask of it: `caught up` is returned once, when that moment has come. Networks that cannot go on do not count.
 */
function createFinish(): (statuses: readonly NetworkStatus[]) => 'reading' | 'caught up' | 'finished' {
  const caughtUpAt = new Map<Network, number>();
  let isAnnounced = false;
  return (statuses) => {
    for (const { network, isOurs, worker } of statuses) {
      if (!isOurs) caughtUpAt.delete(network);
      else if (worker?.isUpToDate && !caughtUpAt.has(network)) caughtUpAt.set(network, performance.now());
    }
    const counted = statuses.filter(({ isOurs, worker }) => !isOurs || worker?.stuckBecause == null);
    if (!counted.every(({ network }) => caughtUpAt.has(network))) return 'reading';
    const last = Math.max(...caughtUpAt.values());
    // What the tasks or the newest blocks have added to the history is read too.
    const isDone = ({ worker }: NetworkStatus) =>
      worker?.isHistoryRead === true && worker.tasksStartedAt > last;
    if (counted.every(isDone)) return 'finished';
    if (isAnnounced) return 'reading';
    isAnnounced = true;
    return 'caught up';
  };
}

type Workers = Map<
  string,
  { readonly worker?: NetworkWorker | undefined; readonly state: 'working' | 'waiting' | 'stopped' }
>;

async function keepIndexing(source: NetworkSource, options: IndexerOptions, workers: Workers): Promise<void> {
  const { store, signal, writeLog, timing = {} } = options;
  const { selector, name: network } = source.network;
  const seconds = timing.leaseSeconds ?? LEASE_SECONDS;
  const holder = randomUUID();
  let isWaiting = false;
  let isTroubled = false;
  while (!signal.aborted) {
    try {
      if (!(await store.index.lease(selector, holder, seconds))) {
        if (!isWaiting) writeLog('another indexer works on it; waiting', { network });
        isWaiting = true;
        workers.set(selector, { ...workers.get(selector), state: 'waiting' });
        await untilLater(timing.leasePollMs ?? LEASE_POLL_MS, signal);
        continue;
      }
      if (isWaiting) writeLog('taken over', { network });
      isWaiting = false;
      await workWithLease(source, options, holder, seconds, workers);
      isTroubled = false;
    } catch (error) {
      if (signal.aborted) break;
      if (error instanceof SchemaMovedError) throw error;
      if (error instanceof LeaseLostError) {
        writeLog(error.message, { level: 'warn', network });
        continue;
      }
      // The database is away, as a rule. What it has not acknowledged is done again.
      if (!isTroubled) writeLog(`${(error as Error).message}; trying again`, { level: 'warn', network });
      isTroubled = true;
      await untilLater(RETRY_MS, signal);
    }
  }
}

/** Works while the lease holds; a renewal that comes too late ends the work. */
async function workWithLease(
  source: NetworkSource,
  { store, connect, signal, writeLog, userAgent, timing: given = {} }: IndexerOptions,
  holder: string,
  seconds: number,
  workers: Workers,
): Promise<void> {
  const { network } = source;
  const { selector } = network;
  const lost = new AbortController();
  let lossReason = '';
  const working = AbortSignal.any([signal, lost.signal]);
  const timing = { ...defaultTiming, ...given };
  const reader = await connect(source, {
    store,
    progress: { network, ledger: store.index, holder, timing, writeLog },
    ...(given.endpoints && { endpointTiming: given.endpoints }),
    userAgent,
    signal: working,
  });
  const worker = createNetworkWorker(source, reader, working);
  let renewedAt = performance.now();
  const renewal = setInterval(
    async () => {
      const askedAt = performance.now();
      const isHeld = await store.index.lease(selector, holder, seconds).catch(() => undefined);
      if (isHeld) renewedAt = askedAt;
      if (isHeld === false) lossReason = 'Another indexer works on this network now';
      else if (performance.now() - renewedAt > seconds * 1000)
        lossReason = `The lease on this network was not renewed in ${seconds} s (database or machine too slow); asking for it again`;
      if (lossReason !== '') lost.abort();
    },
    (seconds * 1000) / 3,
  );
  workers.set(selector, { worker, state: 'working' });
  try {
    await worker.run();
    if (lost.signal.aborted) throw new LeaseLostError(lossReason);
  } finally {
    clearInterval(renewal);
    workers.set(selector, { worker, state: 'stopped' });
    reader.close();
    await store.index.release(selector, holder).catch(() => undefined);
  }
}
