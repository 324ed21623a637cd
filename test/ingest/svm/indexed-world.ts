/** Indexes a virtual Solana cluster with the real engine into a real store, and compares the store with what happened. */
import { onTestFinished } from 'vitest';
import type { Message } from '../../../src/domain/message.ts';
import { findingKinds } from '../../../src/domain/networks/index-findings.ts';
import { parseSentMessage } from '../../../src/ingest/engine/event-facts.ts';
import { type IndexerTiming, type NetworkStatus, startIndexer } from '../../../src/ingest/engine/indexer.ts';
import { connectNetwork } from '../../../src/ingest/families.ts';
import type { SvmSource } from '../../../src/ingest/svm/settings.ts';
import type { Store } from '../../../src/store/store.ts';
import { briefly } from '../../chain/faulty-node.ts';
import { allRecords, hurriedTiming } from '../../chain/indexing.ts';
import { openTestStore } from '../../database.ts';
import type { SolanaWorld } from '../../solana/ccip-world.ts';
import type { SolanaProvider } from '../../solana/endpoint/provider.ts';
import { type EvmMessage, messageIdOf } from '../../solana/evm-messages.ts';

/** An empty store, until the test ends. */
export async function openStore(): Promise<Store> {
  const store = await openTestStore();
  onTestFinished(() => store.close());
  return store;
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

export interface Indexed {
  readonly statuses: readonly NetworkStatus[];
  readonly notices: readonly string[];
}

export interface IndexingOptions {
  readonly timing?: Partial<IndexerTiming>;
  /** Ends it before everything is read. */
  readonly until?: (status: NetworkStatus | undefined) => boolean;
}

const LOOK_EVERY_MS = 20;

/** What `lanescan index --once` does, or less where `until` ends it. */
export async function indexOnce(
  store: Store,
  source: SvmSource,
  { timing, until }: IndexingOptions = {},
): Promise<Indexed> {
  const stopping = new AbortController();
  const notices: string[] = [];
  const indexer = startIndexer({
    sources: [source],
    connect: connectNetwork,
    store,
    signal: stopping.signal,
    userAgent: 'lanescan-test',
    notice: (line) => notices.push(line),
    once: true,
    timing: { ...hurriedTiming, endpoints: briefly, ...timing },
  });
  let atEnd: readonly NetworkStatus[] | undefined;
  const looking = setInterval(() => {
    const statuses = indexer.statuses();
    if (!until?.(statuses[0]) || atEnd) return;
    atEnd = statuses;
    stopping.abort();
  }, LOOK_EVERY_MS);
  try {
    await indexer.ended;
  } finally {
    clearInterval(looking);
  }
  return { statuses: atEnd ?? indexer.statuses(), notices };
}

/** Stores the messages that were sent to Solana, as an indexer of their source chain would. */
export async function storeReceived(store: Store, world: SolanaWorld): Promise<void> {
  await store.apply(
    world.received.map((message) => {
      const remote = world.remotes.find(
        ({ network }) => network.selector === message.sourceChainSelector.toString(),
      );
      if (!remote) throw new Error(`${message.sourceChainSelector} is no remote of this world`);
      const sentAt = new Date(world.cluster.timeOf(1) * 1_000).toISOString();
      return {
        kind: 'Sent' as const,
        message: parseSentMessage(recordOfReceived(message, sentAt), remote.network, world.network),
        seen: {
          network: remote.network.selector,
          blockNumber: 1,
          blockHash: `0x${'01'.repeat(32)}`,
          transactionHash: `0x${'02'.repeat(32)}`,
          logIndex: Number(message.sequenceNumber),
          at: sentAt,
        },
      };
    }),
  );
}

function recordOfReceived(message: EvmMessage, sentAt: string): object {
  return {
    messageId: messageIdOf(message),
    origin: message.sender,
    sender: message.sender,
    receiver: message.receiver,
    sendTransactionHash: `0x${'02'.repeat(32)}`,
    sendTimestamp: sentAt,
    nonce: '0',
    sequenceNumber: message.sequenceNumber.toString(),
    onramp: message.onRamp,
    routerAddress: null,
    sendBlockNumber: 1,
    sendLogIndex: Number(message.sequenceNumber),
    data: message.data,
    tokenAmounts: [],
    extraArgs: {
      computeUnits: message.computeUnits,
      accountIsWritableBitmap: message.isWritableBitmap.toString(),
      allowOutOfOrderExecution: true,
      tokenReceiver: message.tokenReceiver,
      accounts: message.accounts,
    },
    version: '1.6.0',
    finality: 0,
    verifiers: null,
    executor: null,
    fees: {
      fixedFeesDetails: { tokenAddress: message.feeToken, totalAmount: message.feeTokenAmount.toString() },
    },
  };
}

/** How a store differs from what happened; empty where it does not. Messages to Solana are compared where they are stored. */
export async function differencesFrom(world: SolanaWorld, store: Store): Promise<readonly string[]> {
  const records = await allRecords(store);
  const differences: string[] = [];
  const compare = (id: string, key: string, stored: unknown, expected: unknown) => {
    if (String(stored) !== String(expected)) {
      differences.push(`${id}: ${key} is ${String(stored)} instead of ${String(expected)}`);
    }
  };
  for (const sent of world.truth.sends) {
    const text = records.get(sent.messageId);
    if (text === undefined) {
      differences.push(`message ${sent.messageId} (${sent.trace}) is missing`);
      continue;
    }
    const record = JSON.parse(text) as Message;
    compare(sent.messageId, 'status', record.status, 'SOURCE_FINALIZED');
    compare(sent.messageId, 'transaction', record.sendTransactionHash, sent.signature);
    compare(sent.messageId, 'slot', record.sendBlockNumber, sent.slot);
    compare(sent.messageId, 'time', Date.parse(record.sendTimestamp) / 1_000, sent.blockTime);
    compare(sent.messageId, 'number', record.sequenceNumber, sent.body.header.sequenceNumber);
    compare(sent.messageId, 'nonce', record.nonce, sent.body.header.nonce);
    compare(sent.messageId, 'sender', record.sender, sent.body.sender);
    compare(sent.messageId, 'origin', record.origin, sent.origin);
    compare(sent.messageId, 'onramp', record.onramp, world.programs.router);
    if (sent.logIndex !== undefined) compare(sent.messageId, 'log', record.sendLogIndex, sent.logIndex);
    compare(
      sent.messageId,
      'tokens',
      record.tokenAmounts.map((token) => `${token.sourceTokenAddress} ${token.amount}`),
      sent.body.tokenAmounts.map(({ amount }, index) => `${sent.mints[index]} ${amount}`),
    );
  }
  const stored = world.received.filter((message) => records.has(messageIdOf(message)));
  for (const message of stored) {
    const id = messageIdOf(message);
    const record = JSON.parse(records.get(id) ?? '{}') as Message;
    const own = world.truth.executions.filter(({ messageId }) => messageId === id);
    const execution = own.find(({ isSuccess }) => isSuccess) ?? own.at(-1);
    const isCommitted = world.truth.commits.some(
      ({ sourceChainSelector, minSeqNr, maxSeqNr }) =>
        sourceChainSelector === message.sourceChainSelector &&
        minSeqNr <= message.sequenceNumber &&
        message.sequenceNumber <= maxSeqNr,
    );
    const status = execution
      ? execution.isSuccess
        ? 'SUCCESS'
        : 'FAILED'
      : isCommitted
        ? 'COMMITTED'
        : 'SENT';
    compare(id, 'status', record.status, status);
    compare(id, 'receipt', record.receiptTransactionHash, execution?.signature ?? null);
  }
  const extra = records.size - world.truth.sends.length - stored.length;
  if (extra > 0) differences.push(`${extra} messages that did not happen`);
  return differences;
}

export interface Verdict {
  readonly kind: 'complete' | 'incomplete and said so' | 'incomplete in silence';
  /** Why the indexer says that something is missing. */
  readonly reasons: readonly string[];
  readonly differences: readonly string[];
}

export async function judge(world: SolanaWorld, store: Store, { statuses }: Indexed): Promise<Verdict> {
  const differences = await differencesFrom(world, store);
  const reasons: string[] = [];
  const { selector } = world.network;
  for (const { worker } of statuses) {
    if ((worker?.failedRanges ?? 0) > 0) reasons.push(`${worker?.failedRanges} failed ranges`);
    if (worker?.problem) reasons.push(worker.problem);
  }
  for (const { kind, detail } of await store.index.checks.findings(selector)) {
    if (findingKinds[kind].isLoss) reasons.push(`${kind}: ${detail}`);
  }
  for (const program of [world.programs.router, world.programs.offRamp]) {
    const logs = await store.index.checks.unreadableLogs(selector, program);
    if (logs > 0) reasons.push(`${logs} unreadable logs of ${program}`);
  }
  if (differences.length === 0) return { kind: 'complete', reasons, differences };
  return {
    kind: reasons.length > 0 ? 'incomplete and said so' : 'incomplete in silence',
    reasons,
    differences,
  };
}
