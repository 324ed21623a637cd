/** Worlds of virtual chains for the real engine and a real store, and how the two differ. */
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { stringify } from 'yaml';
import type { Message } from '../../src/domain/message.ts';
import type { EvmSource } from '../../src/ingest/evm/settings.ts';
import type { BlockId } from '../../src/store/ledger/index-ledger.ts';
import type { Store } from '../../src/store/store.ts';
import { allRecords, evmSource } from '../chain/indexing.ts';
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
