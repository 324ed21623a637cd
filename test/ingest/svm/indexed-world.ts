/** Indexes a virtual Solana cluster with the real engine into a real store, and compares the store with what happened. */
import type { Hex } from 'viem';
import { expect, onTestFinished } from 'vitest';
import type { RangeFact } from '../../../src/domain/facts.ts';
import type { Message } from '../../../src/domain/message.ts';
import type { IndexerOptions } from '../../../src/ingest/engine/indexer.ts';
import type { GenuineContract } from '../../../src/ingest/evm/contracts/contracts.ts';
import { createDecoder } from '../../../src/ingest/evm/decode/decoder.ts';
import type { ChainLog } from '../../../src/ingest/evm/rpc/chain.ts';
import type { SvmSource } from '../../../src/ingest/svm/settings.ts';
import type { Store } from '../../../src/store/store.ts';
import { briefly } from '../../chain/faulty-node.ts';
import { allRecords, type Indexed, type Indexing, indexSources, judgeIndexed } from '../../chain/indexing.ts';
import { openTestStore } from '../../database.ts';
import type { SolanaWorld } from '../../solana/ccip-world.ts';
import { type SolanaProvider, startSolanaProvider } from '../../solana/endpoint/node.ts';
import { archiveNode, type SolanaProfile } from '../../solana/endpoint/solana-profile.ts';
import { hiding } from '../../solana/lies.ts';
import { type EvmMessage, messageIdOf, messageSent } from '../../solana/received-messages.ts';
import type { Ledger } from '../../solana/runtime/virtual-cluster.ts';
import { sepolia } from '../../solana/world-options.ts';
import { answeringNode } from '../evm/answering-node.ts';

/** An empty store, until the test ends. */
export async function openStore() {
  const store = await openTestStore();
  onTestFinished(() => store.close());
  return store;
}

/** An endpoint of a ledger, until the test ends. */
export async function serve(ledger: Ledger, profile: SolanaProfile = archiveNode): Promise<SolanaProvider> {
  const provider = await startSolanaProvider(ledger, profile);
  onTestFinished(() => provider.close());
  return provider;
}

/** A cluster as the configuration would declare it. */
export function sourceOf(
  world: SolanaWorld,
  providers: readonly SolanaProvider[],
  overrides: Partial<SvmSource> = {},
): SvmSource {
  return {
    network: world.network,
    rpc: providers.map(({ url }) => url),
    routers: [world.programs.router],
    offramps: [],
    start: null,
    requestsPerSecond: 10_000,
    batchSize: 50,
    pollEvery: 20,
    ...overrides,
  };
}

/** What `lanescan index --once` does, or less where `until` ends it. */
export const indexOnce = (
  store: Store,
  source: SvmSource | IndexerOptions['sources'],
  { timing, ...options }: Indexing = {},
): Promise<Indexed> =>
  indexSources(store, [source].flat(), { timing: { endpoints: briefly, ...timing }, ...options });

/** The off-ramp is configured, instead of found in the history of the router. */
export const configured = (world: SolanaWorld) => ({ offramps: [world.programs.offRamp] });

/** Lets a world settle and serves it, beside a store with the messages that were sent to Solana. */
export async function stage(
  world: SolanaWorld,
  ledgers: readonly Ledger[] = [world.cluster],
  overrides: Partial<SvmSource> = configured(world),
) {
  world.settle();
  const providers = await Promise.all(ledgers.map((ledger) => serve(ledger)));
  const store = await openStore();
  await storeReceived(store, world);
  const source = sourceOf(world, providers, overrides);
  return {
    providers,
    store,
    source,
    index: (options?: Indexing) => indexOnce(store, source, options),
    differences: () => differencesFrom(world, store),
    findings: () => store.index.checks.findings(world.network.selector),
  };
}

/** The same, with everything indexed. */
export async function indexWorld(world: SolanaWorld, overrides?: Partial<SvmSource>) {
  const staged = await stage(world, [world.cluster], overrides);
  return { ...staged, ...(await staged.index()) };
}

/** A transaction that a list leaves out is reported, and found at another endpoint. Resolves to what was reported. */
export async function lookElsewhere(world: SolanaWorld, hidden: string | undefined) {
  const poor = await stage(world, [hiding(world.cluster, hidden ?? '')]);
  await poor.index();
  const reported = await poor.findings();
  const rpc = [...poor.source.rpc, (await serve(world.cluster)).url];
  await indexOnce(poor.store, { ...poor.source, rpc });
  expect(await poor.findings()).toEqual([]);
  expect(await poor.differences()).toEqual([]);
  return reported;
}

/** All records of a store by message id. */
export async function recordsOf(store: Store): Promise<ReadonlyMap<string, Message>> {
  return new Map([...(await allRecords(store))].map(([id, text]) => [id, JSON.parse(text) as Message]));
}

/** A commit on Sepolia of the first messages of a lane from Solana. */
export function committedOnSepolia(
  world: SolanaWorld,
  range: { readonly to: number; readonly onramp?: string; readonly merkleRoot?: string; readonly at?: Date },
): RangeFact {
  const { to, onramp = world.programs.router, merkleRoot = `0x${'0a'.repeat(32)}`, at = new Date() } = range;
  const { selector } = sepolia.network;
  return {
    kind: 'Committed',
    lane: { sourceChainSelector: world.network.selector, destChainSelector: selector, onramp },
    fromSequenceNumber: '1',
    toSequenceNumber: String(to),
    merkleRoot,
    offramp: `0x${'0f'.repeat(20)}`,
    seen: {
      network: selector,
      blockNumber: 9,
      blockHash: `0x${'09'.repeat(32)}`,
      transactionHash: `0x${'08'.repeat(32)}`,
      logIndex: 1,
      at: at.toISOString(),
    },
  };
}

/** Stores the messages that were sent to Solana: what an indexer of their source chain makes of the events. */
export async function storeReceived(store: Store, world: SolanaWorld): Promise<void> {
  const node = answeringNode({
    transaction: (hash: Hex) => ({ hash, from: `0x${'a1'.repeat(20)}`, to: null, input: '0x' }),
  });
  for (const { network, onRamp } of world.remotes.filter(({ network: { family } }) => family === 'EVM')) {
    const contract = { address: onRamp, role: 'onRamp', version: '1.6.0', typeAndVersion: 'OnRamp 1.6.0' };
    const logs = world.received
      .filter(({ sourceChainSelector }) => sourceChainSelector === BigInt(network.selector))
      .map(
        (message): ChainLog => ({
          ...messageSent(message),
          address: onRamp,
          blockNumber: 1,
          blockHash: `0x${'05'.repeat(32)}`,
          transactionHash: `0x${'02'.repeat(32)}`,
          logIndex: Number(message.sequenceNumber),
          blockTimestamp: world.cluster.timeOf(1),
        }),
      );
    const trusted = new Map([[onRamp, contract as GenuineContract]]);
    const { facts, unreadable } = await createDecoder(network).decode(node, logs, trusted);
    expect(unreadable).toEqual([]);
    await store.apply(facts);
  }
}

/** What truly became of a message to Solana; no status where it was not committed. */
export function outcomeOf({ truth }: SolanaWorld, message: EvmMessage) {
  const id = messageIdOf(message);
  const attempts = truth.executions.filter(({ messageId }) => messageId === id);
  const last = attempts.find(({ isSuccess }) => isSuccess) ?? attempts.at(-1);
  const isCommitted = truth.commits.some(
    ({ sourceChainSelector, minSeqNr, maxSeqNr }) =>
      sourceChainSelector === message.sourceChainSelector &&
      minSeqNr <= message.sequenceNumber &&
      message.sequenceNumber <= maxSeqNr,
  );
  const executed = last && (last.isSuccess ? ('SUCCESS' as const) : ('FAILED' as const));
  return {
    status: executed ?? (isCommitted ? ('COMMITTED' as const) : undefined),
    receipt: last?.signature ?? null,
    receiptAt: last ? new Date(last.blockTime * 1_000).toISOString() : null,
  };
}

/** How a store differs from what happened; empty where it does not. Messages to Solana are compared where they are stored. */
export async function differencesFrom(world: SolanaWorld, store: Store): Promise<readonly string[]> {
  const records = await recordsOf(store);
  const differences: string[] = [];
  const compare = (id: string, values: Readonly<Record<string, readonly [unknown, unknown]>>) => {
    for (const [key, [stored, expected]] of Object.entries(values))
      if (String(stored) !== String(expected))
        differences.push(`${id}: ${key} is ${String(stored)} instead of ${String(expected)}`);
  };
  for (const sent of world.truth.sends) {
    const record = records.get(sent.messageId);
    if (!record) {
      differences.push(`message ${sent.messageId} (${sent.trace}) is missing`);
      continue;
    }
    const { header, sender, tokenAmounts } = sent.body;
    compare(sent.messageId, {
      status: [record.status, 'SOURCE_FINALIZED'],
      transaction: [record.sendTransactionHash, sent.signature],
      slot: [record.sendBlockNumber, sent.slot],
      time: [Date.parse(record.sendTimestamp) / 1_000, sent.blockTime],
      number: [record.sequenceNumber, header.sequenceNumber],
      nonce: [record.nonce, header.nonce],
      sender: [record.sender, sender],
      origin: [record.origin, sent.origin],
      onramp: [record.onramp, world.programs.router],
      log: [record.sendLogIndex, sent.logIndex ?? record.sendLogIndex],
      tokens: [
        record.tokenAmounts.map((token) => `${token.sourceTokenAddress} ${token.amount}`),
        tokenAmounts.map(({ amount }, index) => `${sent.mints[index]} ${amount}`),
      ],
    });
  }
  const stored = world.received.filter((message) => records.has(messageIdOf(message)));
  for (const message of stored) {
    const id = messageIdOf(message);
    const record = records.get(id);
    const { status, receipt, receiptAt } = outcomeOf(world, message);
    compare(id, {
      status: [record?.status, status ?? 'SENT'],
      receipt: [record?.receiptTransactionHash, receipt],
      'time of the receipt': [record?.receiptTimestamp, receiptAt],
    });
  }
  const extra = records.size - world.truth.sends.length - stored.length;
  if (extra > 0) differences.push(`${extra} messages that did not happen`);
  return differences;
}

export const judge = async (world: SolanaWorld, store: Store, indexed: Indexed) =>
  judgeIndexed(store, indexed, await differencesFrom(world, store), [
    world.programs.router,
    world.programs.offRamp,
  ]);
