// @module-tag slow: indexes both ends of lanes and loads the official client
/** Lanes between Solana and an EVM chain with both ends indexed: messages are seen whole, in both directions. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Message } from '../../../src/domain/message.ts';
import type { EvmSource } from '../../../src/ingest/evm/settings.ts';
import { type RunningServer, startServer } from '../../api/running-server.ts';
import { CCIPAPIClient } from '../../lab/sdk.ts';
import { silent } from '../../lab/sdk-chain.ts';
import { createSolanaWorld, type SolanaWorld } from '../../solana/ccip-world.ts';
import { type SolanaProvider, startSolanaProvider } from '../../solana/endpoint/provider.ts';
import { createEvmCounterpart, type EvmCounterpart } from '../../solana/evm-counterpart.ts';
import { messageIdOf } from '../../solana/received-messages.ts';
import { toHex } from '../../solana/runtime/bytes.ts';
import { makeTraffic } from '../../solana/traffic.ts';
import { sepolia } from '../../solana/world-options.ts';
import { type Provider, startProvider } from '../../virtual-chain/endpoint.ts';
import { indexOnce, outcomeOf, recordsOf, sourceOf } from './indexed-world.ts';

/** More than an hour of slots: manual execution is open for what was committed before them. */
const LATER_SLOTS = 10_000;
const AGE_MS = 14_000 * 400;

let world: SolanaWorld;
let counterpart: EvmCounterpart;
let providers: readonly [SolanaProvider, Provider];
let server: RunningServer;
let records: ReadonlyMap<string, Message>;

beforeAll(async () => {
  world = createSolanaWorld({ startedAtMs: Date.now() - AGE_MS });
  makeTraffic(world, { seed: 'lanes', steps: 160 });
  world.cluster.grow(LATER_SLOTS);
  counterpart = createEvmCounterpart(world, sepolia);
  providers = [await startSolanaProvider(world.cluster), await startProvider(counterpart.chain)];
  server = await startServer();
  const evm: EvmSource = {
    network: sepolia.network,
    rpc: [providers[1].url],
    routers: [counterpart.router],
    start: null,
    finality: 'finalized',
    requestsPerSecond: 10_000,
    batchSize: 50,
    maxRange: 10_000,
    pollEvery: 20,
    verify: 'head',
    verifierResults: null,
  };
  await indexOnce(server.store, [sourceOf(world, [providers[0]]), evm]);
  records = await recordsOf(server.store);
});
afterAll(async () => {
  await server?.close();
  for (const provider of providers ?? []) await provider.close();
});

test('every message of both directions is there, and no other', () => {
  const ids = [
    ...world.truth.sends.map(({ messageId }) => messageId),
    ...world.received.map(messageIdOf),
  ].toSorted();
  expect(ids.length).toBeGreaterThan(40);
  expect([...records.keys()].toSorted()).toEqual(ids);
});

test('messages from Solana end with their execution on the EVM chain', () => {
  for (const sent of world.truth.sends) {
    const receipt = counterpart.receiptOf(sent);
    const isCommitted = counterpart.roots.some(({ maxSeqNr }) => sent.body.header.sequenceNumber <= maxSeqNr);
    expect(records.get(sent.messageId), sent.messageId).toMatchObject({
      status: receipt ? 'SUCCESS' : isCommitted ? 'COMMITTED' : 'SOURCE_FINALIZED',
      sendTransactionHash: sent.signature,
      receiptTransactionHash: receipt ?? null,
    });
  }
});

test('messages to Solana end with their execution there, and failed ones may be executed by hand', () => {
  const statuses = new Set<string>();
  for (const message of world.received) {
    const messageId = messageIdOf(message);
    const { status = 'SOURCE_FINALIZED', receipt } = outcomeOf(world, message);
    statuses.add(status);
    expect(records.get(messageId), messageId).toMatchObject({
      status,
      sendTransactionHash: counterpart.sendTransactionOf(message),
      receiptTransactionHash: receipt,
      readyForManualExecution: status === 'FAILED' || status === 'COMMITTED',
    });
  }
  expect(statuses).toEqual(new Set(['SUCCESS', 'FAILED', 'COMMITTED', 'SOURCE_FINALIZED']));
});

describe('execution inputs are what the official client needs: it hashes the batch and finds the root', () => {
  const client = () => new CCIPAPIClient(server.url, { logger: silent });

  test('towards Solana', async () => {
    for (const message of world.received) {
      const commit = world.truth.commits.find(
        ({ minSeqNr, maxSeqNr }) => minSeqNr <= message.sequenceNumber && message.sequenceNumber <= maxSeqNr,
      );
      if (!commit) continue;
      const input = await client().getExecutionInput(messageIdOf(message));
      expect(input).toMatchObject({ offRamp: world.programs.offRamp, merkleRoot: toHex(commit.merkleRoot) });
    }
  });

  test('from Solana', async () => {
    for (const sent of world.truth.sends) {
      const number = sent.body.header.sequenceNumber;
      const root = counterpart.roots.find(
        ({ minSeqNr, maxSeqNr }) => minSeqNr <= number && number <= maxSeqNr,
      );
      if (!root) continue;
      const input = await client().getExecutionInput(sent.messageId);
      expect(input.merkleRoot).toBe(root.merkleRoot);
      expect(input.offRamp.toLowerCase()).toBe(counterpart.offRamp);
    }
  });
});
