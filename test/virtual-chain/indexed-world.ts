/** Indexes a world of virtual chains with the real engine into a real store, and compares the two. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { stringify } from 'yaml';
import type { Message } from '../../src/domain/message.ts';
import { findingKinds } from '../../src/domain/networks/index-findings.ts';
import type { IndexerTiming, NetworkStatus } from '../../src/ingest/engine/indexer.ts';
import type { EvmSource } from '../../src/ingest/evm/settings.ts';
import type { BlockId } from '../../src/store/ledger/index-ledger.ts';
import type { Store } from '../../src/store/store.ts';
import { allRecords, evmSource, runIndexer } from '../chain/indexing.ts';
import { freshFolder } from '../fresh-folder.ts';
import { type CcipChain, type CcipWorld, expectedMessages } from './ccip-chain.ts';
import type { Provider } from './endpoint.ts';

/** A chain as the configuration would declare it. */
export function sourceOf(
  chain: CcipChain,
  providers: readonly Provider[],
  overrides: Partial<EvmSource> = {},
): EvmSource {
  const rpc = providers.map(({ url }) => url);
  return evmSource({ network: chain.network, rpc, routers: [chain.router], ...overrides });
}

/** Writes a lanescan.yaml that names chains with their endpoints, and says where it is. */
export function writeWorldConfiguration(
  chains: readonly (readonly [CcipChain, readonly Provider[]])[],
  settings: object = {},
): string {
  const file = path.join(freshFolder(), 'lanescan.yaml');
  const networks = chains.map(([{ network, router }, providers]) => ({
    network: network.name,
    rpc: providers.map(({ url }) => url.href),
    routers: [router],
    requestsPerSecond: 10_000,
    ...settings,
  }));
  writeFileSync(file, stringify({ networks }));
  return file;
}

export interface WorldIndexing {
  readonly sources: readonly EvmSource[];
  readonly timing?: Partial<IndexerTiming>;
  /** Ends it before everything is read. */
  readonly until?: (statuses: readonly NetworkStatus[]) => boolean;
}

export type IndexedWorld = Awaited<ReturnType<typeof indexWorld>>;

const LOOK_EVERY_MS = 20;

/** What `lanescan index --once` does, or less where `until` ends it. */
export async function indexWorld(store: Store, options: WorldIndexing) {
  const running = runIndexer(store, options.sources, { once: true, timing: options.timing });
  const { indexer, logLines } = running;
  const { until } = options;
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

/** How a store differs from the chains; empty where it does not. */
export async function differencesFrom({ a, b }: CcipWorld, store: Store): Promise<readonly string[]> {
  const records = await allRecords(store);
  const differences: string[] = [];
  let expected = 0;
  for (const [from, to] of [
    [a, b],
    [b, a],
  ] as const) {
    for (const message of expectedMessages(from, to)) {
      expected++;
      const text = records.get(message.messageId);
      if (text === undefined) {
        differences.push(
          `${from.network.name}: message ${message.sequenceNumber} of ${message.onramp} is missing`,
        );
        continue;
      }
      const record = JSON.parse(text) as Message;
      const { messageId, sourceChainSelector, ...facts } = message;
      for (const [key, value] of Object.entries(facts)) {
        const stored = record[key as keyof Message];
        const isSame = String(stored).toLowerCase() === String(value).toLowerCase();
        if (!isSame) differences.push(`${messageId}: ${key} is ${stored} instead of ${value}`);
      }
    }
  }
  if (records.size > expected) differences.push(`${records.size - expected} messages that no chain has`);
  return differences;
}

/** Blocks that are held, or in which facts were seen, and the chain does not have. */
export async function falseBlocks(chain: CcipChain, store: Store): Promise<readonly BlockId[]> {
  const { selector } = chain.network;
  const { blocks } = await store.index.state(selector);
  const seen = await store.index.factBlocks(selector, Number.MAX_SAFE_INTEGER, 1_000);
  return [...blocks, ...seen].filter(({ number, hash }) => chain.block(number)?.hash !== hash);
}

/** Lets a chain grow until its head is later than any block that somebody has invented before. */
export function growBeyondNow(chain: CcipChain): void {
  do chain.grow(20);
  while ((chain.block(chain.head)?.timestamp ?? 0) * 1000 <= Date.now());
}

/** What an indexer makes of endpoints. Less in silence must never be. */
export type Verdict = Awaited<ReturnType<typeof judge>>;

export async function judge(world: CcipWorld, store: Store, indexed: IndexedWorld) {
  const differences = await differencesFrom(world, store);
  /** Why the indexer says that something is missing. */
  const reasons: string[] = [];
  for (const { network, worker } of indexed.statuses) {
    if ((worker?.failedRanges ?? 0) > 0)
      reasons.push(`${network.name}: ${worker?.failedRanges} failed ranges`);
    if (worker?.stuckBecause) reasons.push(`${network.name}: given up: ${worker.stuckBecause}`);
    if (worker?.problem) reasons.push(`${network.name}: ${worker.problem}`);
    for (const { kind, detail } of await store.index.checks.findings(network.selector))
      if (findingKinds[kind].isLoss) reasons.push(`${network.name}: ${kind}: ${detail}`);
  }
  const incomplete = reasons.length > 0 ? 'incomplete and said so' : 'incomplete in silence';
  const kind = differences.length === 0 ? 'complete' : incomplete;
  return { kind, reasons, differences };
}
