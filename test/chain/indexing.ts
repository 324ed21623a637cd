/** Indexing the lab: sources for its networks, and an indexer that runs until all is read. */
import type { Message } from '../../src/domain/message.ts';
import { findNetwork } from '../../src/domain/networks/networks.ts';
import { type Indexer, type IndexerTiming, startIndexer } from '../../src/ingest/engine/indexer.ts';
import type { Hex } from '../../src/ingest/evm/rpc/chain.ts';
import type { EvmSource } from '../../src/ingest/evm/settings.ts';
import { connectNetwork } from '../../src/ingest/families.ts';
import type { Store } from '../../src/store/store.ts';
import type { Lab, LabNetwork } from '../lab/lab.ts';

/** Blocks that the tests' networks may still abandon. */
export const FINALITY = 5;

/** A network of the lab as the configuration would declare it. */
export function labSource(network: LabNetwork, overrides: Partial<EvmSource> = {}): EvmSource {
  const known = findNetwork(network.name);
  if (!known) throw new Error(`${network.name} is not in the table of networks`);
  return {
    network: known,
    rpc: [new URL(network.url)],
    routers: Object.values(network.routers).map((router) => router.toLowerCase() as Hex),
    start: null,
    finality: FINALITY,
    requestsPerSecond: 10_000,
    batchSize: 50,
    maxRange: 10_000,
    pollEvery: 20,
    verify: 'all',
    verifierResults: null,
    ...overrides,
  };
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

export interface IndexOptions {
  readonly sources?: readonly EvmSource[];
  readonly signal?: AbortSignal;
  readonly notice?: (line: string) => void;
  readonly timing?: Partial<IndexerTiming>;
}

/** Reads everything there is up to the heads of the chains, then ends. */
export async function indexOnce(store: Store, lab: Lab, options: IndexOptions = {}): Promise<void> {
  const { ended } = startIndexer({
    sources: options.sources ?? lab.networks.map((network) => labSource(network)),
    connect: connectNetwork,
    store,
    signal: options.signal ?? new AbortController().signal,
    userAgent: 'lanescan-test',
    notice: options.notice ?? (() => undefined),
    once: true,
    timing: { ...hurriedTiming, ...options.timing },
  });
  await ended;
}

export interface FollowingIndexer {
  readonly indexer: Indexer;
  readonly notices: readonly string[];
  stop(): Promise<void>;
}

/** Follows the chains until it is stopped. */
export function follow(store: Store, lab: Lab, options: IndexOptions = {}): FollowingIndexer {
  const stopping = new AbortController();
  const notices: string[] = [];
  const indexer = startIndexer({
    sources: options.sources ?? lab.networks.map((network) => labSource(network)),
    connect: connectNetwork,
    store,
    signal: stopping.signal,
    userAgent: 'lanescan-test',
    notice: (line) => notices.push(line),
    timing: { ...hurriedTiming, ...options.timing },
  });
  return {
    indexer,
    notices,
    async stop() {
      stopping.abort();
      await indexer.ended;
    },
  };
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
