/** Indexing the lab: sources for its networks, and an indexer that runs until all is read. */
import type { Message } from '../../src/domain/message.ts';
import { findingKinds } from '../../src/domain/networks/index-findings.ts';
import { findNetwork } from '../../src/domain/networks/networks.ts';
import {
  type IndexerOptions,
  type IndexerTiming,
  type NetworkStatus,
  startIndexer,
} from '../../src/ingest/engine/indexer.ts';
import type { Hex } from '../../src/ingest/evm/rpc/chain.ts';
import type { EvmSource } from '../../src/ingest/evm/settings.ts';
import { connectNetwork } from '../../src/ingest/families.ts';
import type { Store } from '../../src/store/store.ts';
import type { Lab, LabNetwork } from '../lab/lab.ts';

/** Blocks that the tests' networks may still abandon. */
export const FINALITY = 5;

/** Settings of a network that is not throttled, as the configuration would declare it. */
export function evmSource(
  given: Pick<EvmSource, 'network' | 'rpc' | 'routers'> & Partial<EvmSource>,
): EvmSource {
  return {
    start: null,
    finality: 'finalized',
    acceptDeepReorgs: false,
    requestsPerSecond: 10_000,
    batchSize: 50,
    maxRange: 10_000,
    pollEvery: 20,
    verify: 'head',
    verifierResults: null,
    ...given,
  };
}

/** A network of the lab. */
export function labSource(network: LabNetwork, overrides: Partial<EvmSource> = {}): EvmSource {
  const known = findNetwork(network.name);
  if (!known) throw new Error(`${network.name} is not in the table of networks`);
  return evmSource({
    network: known,
    rpc: [new URL(network.url)],
    routers: Object.values(network.routers).map((router) => router.toLowerCase() as Hex),
    finality: FINALITY,
    verify: 'all',
    ...overrides,
  });
}

export const hurriedTiming: Partial<IndexerTiming> = {
  retryMinMs: 10,
  retryMaxMs: 500,
  repairMinMs: 50,
  repairMaxMs: 500,
  publishEveryMs: 50,
  secondOpinionMs: 300,
  settleEveryMs: 0,
  tasksEveryMs: 0,
};

export type FollowingIndexer = ReturnType<typeof runIndexer>;

/**
 * The real engine, until it is stopped; `once`, until everything up to the heads of the chains is read.
 *
 * @param logLines gets the log lines
 */
export function runIndexer(
  store: Store,
  sources: IndexerOptions['sources'],
  {
    timing,
    once = false,
    logLines = [],
  }: { timing?: Partial<IndexerTiming> | undefined; once?: boolean; logLines?: string[] } = {},
) {
  const stopping = new AbortController();
  const indexer = startIndexer({
    sources,
    connect: connectNetwork,
    store,
    signal: stopping.signal,
    userAgent: 'lanescan-test',
    writeLog: (line) => logLines.push(line),
    once,
    timing: { ...hurriedTiming, ...timing },
  });
  return {
    indexer,
    logLines: logLines as readonly string[],
    async stop(): Promise<void> {
      stopping.abort();
      await indexer.ended;
    },
  };
}

export interface Indexing {
  readonly timing?: Partial<IndexerTiming>;
  /** Ends it before everything is read. */
  readonly until?: (statuses: readonly NetworkStatus[]) => boolean;
}

export type Indexed = Awaited<ReturnType<typeof indexSources>>;

const LOOK_EVERY_MS = 20;

/** What `lanescan index --once` does, or less where `until` ends it. */
export async function indexSources(
  store: Store,
  sources: IndexerOptions['sources'],
  { timing, until }: Indexing = {},
) {
  const running = runIndexer(store, sources, { once: true, timing });
  const { indexer, logLines } = running;
  /** As they were when it was ended: a problem is over when nobody works any more. */
  let atEnd: readonly NetworkStatus[] | undefined;
  const look = () => {
    const statuses = indexer.statuses();
    if (!until?.(statuses) || atEnd) return;
    atEnd = statuses;
    void running.stop();
  };
  const looking = until && setInterval(look, LOOK_EVERY_MS);
  try {
    await indexer.ended;
  } finally {
    clearInterval(looking);
  }
  return {
    statuses: atEnd ?? indexer.statuses(),
    logLines,
    /** Whether everything was read, or is on the ledger of failures; otherwise `until` has ended it. */
    isUpToDate: atEnd === undefined,
  };
}

/** What an indexer makes of endpoints. Less in silence must never be. */
export type Verdict = Awaited<ReturnType<typeof judgeIndexed>>;

/**
 * @param differences between the store and what happened
 * @param contracts whose unreadable logs count as named
 */
export async function judgeIndexed(
  store: Store,
  { statuses }: Pick<Indexed, 'statuses'>,
  differences: readonly string[],
  contracts: readonly string[] = [],
) {
  /** Why the indexer says that something is missing. */
  const reasons: string[] = [];
  for (const { network, worker } of statuses) {
    const { checks } = store.index;
    const name = (reason: string) => reasons.push(`${network.name}: ${reason}`);
    if ((worker?.failedRanges ?? 0) > 0) name(`${worker?.failedRanges} failed ranges`);
    if (worker?.stuckBecause) name(`given up: ${worker.stuckBecause}`);
    if (worker?.problem) name(worker.problem);
    for (const { kind, detail } of await checks.findings(network.selector))
      if (findingKinds[kind].isLoss) name(`${kind}: ${detail}`);
    for (const contract of contracts) {
      const logs = await checks.unreadableLogs(network.selector, contract);
      if (logs > 0) name(`${logs} unreadable logs of ${contract}`);
    }
  }
  const incomplete = reasons.length > 0 ? 'incomplete and said so' : 'incomplete in silence';
  const kind = differences.length === 0 ? 'complete' : incomplete;
  return { kind, reasons, differences };
}

const labSources = (lab: Lab) => lab.networks.map((network) => labSource(network));

/** Reads everything there is up to the heads of the chains, then ends with the log lines. */
export async function indexOnce(
  store: Store,
  lab: Lab,
  { sources = labSources(lab) }: { readonly sources?: readonly EvmSource[] } = {},
): Promise<readonly string[]> {
  return (await indexSources(store, sources)).logLines;
}

/** Follows the chains until it is stopped. */
export function follow(
  store: Store,
  lab: Lab,
  {
    sources = labSources(lab),
    timing,
  }: { readonly sources?: readonly EvmSource[]; readonly timing?: Partial<IndexerTiming> } = {},
): FollowingIndexer {
  return runIndexer(store, sources, { timing });
}

export async function recordOf(
  store: Store,
  { messageId }: { messageId: string },
): Promise<Message | undefined> {
  const found = await store.findMessage(messageId.slice(2));
  return found && (JSON.parse(found.record) as Message);
}

/** The statuses that a message was seen in, one after the other. */
export async function statusesSeen(
  store: Store,
  { messageId }: { messageId: string },
): Promise<readonly string[]> {
  const history = await store.messageHistory(messageId.slice(2));
  const seen = (history?.entries ?? []).map(({ change, status }) =>
    change === 'removed' ? 'removed' : status,
  );
  return seen.filter((status, index) => status !== seen[index - 1]);
}

/** Every record of the store as it goes over the wire, by message id. */
export async function allRecords(store: Store): Promise<ReadonlyMap<string, string>> {
  const records = new Map<string, string>();
  for await (const batch of store.exportRecords({})) {
    for (const record of batch) records.set((JSON.parse(record) as Message).messageId, record);
  }
  return records;
}
