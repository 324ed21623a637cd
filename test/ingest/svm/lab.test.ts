// @module-tag slow: starts chain nodes with real contracts
/** Lanes of the lab between real EVM contracts and a virtual Solana cluster, both ways. */
import { getAddress } from 'viem';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readSetting } from '../../../src/base/settings.ts';
import type { Message } from '../../../src/domain/message.ts';
import { networksSetting } from '../../../src/ingest/families.ts';
import { type RunningServer, startServer } from '../../api/running-server.ts';
import { FINALITY, labSource } from '../../chain/indexing.ts';
import { type Lab, startLab } from '../../lab/lab.ts';
import { CCIPAPIClient } from '../../lab/sdk.ts';
import { silent } from '../../lab/sdk-chain.ts';
import {
  createSolanaTraffic,
  type SolanaLabNetwork,
  startSolanaNetwork,
} from '../../lab/svm/solana-network.ts';
import { messageIdOf } from '../../solana/received-messages.ts';
import { toHex } from '../../solana/runtime/bytes.ts';
import { indexOnce, outcomeOf, recordsOf } from './indexed-world.ts';

let lab: Lab;
let solana: SolanaLabNetwork;
let server: RunningServer;
let records: ReadonlyMap<string, Message>;

const ROUNDS = 25;
const SLOTS_A_ROUND = 15;

beforeAll(async () => {
  lab = await startLab({ versions: ['1.6'] });
  solana = await startSolanaNetwork(lab.a);
  const runRound = createSolanaTraffic(solana, lab.a.foundation.receiver.address, 'lab test');
  for (let round = 0; round < ROUNDS; round++) {
    await runRound();
    solana.world.cluster.grow(SLOTS_A_ROUND);
  }
  solana.world.settle();
  await lab.a.mine(FINALITY + 1);
  server = await startServer();
  const [source] = readSetting(networksSetting, [solana.configuration], ['networks']);
  if (!source) throw new Error('The configuration has no network.');
  await indexOnce(server.store, [labSource(lab.a), source]);
  records = await recordsOf(server.store);
});
afterAll(async () => {
  await server?.close();
  await solana?.stop();
  await lab?.stop();
});

test('what real contracts send to Solana is committed and executed there', () => {
  const { received } = solana.world;
  expect(received.length).toBeGreaterThan(10);
  for (const message of received) {
    const messageId = messageIdOf(message);
    const { status = 'SOURCE_FINALIZED', receipt } = outcomeOf(solana.world, message);
    expect(records.get(messageId), messageId).toMatchObject({
      status,
      receiptTransactionHash: receipt,
      onramp: getAddress(message.onRamp),
    });
  }
});

test('what Solana sends is committed and executed by real contracts, which check roots and proofs', async () => {
  const { sends } = solana.world.truth;
  expect(sends.length).toBeGreaterThan(10);
  const allowed = {
    success: ['SUCCESS'],
    failure: ['FAILED'],
    untouched: ['COMMITTED', 'SOURCE_FINALIZED'],
  } as const;
  const states = new Set<string>();
  for (const send of sends) {
    const state = await solana.evm.stateOf(send);
    states.add(state);
    const record = records.get(send.messageId);
    expect(allowed[state], send.messageId).toContain(record?.status);
    expect(record?.sendTransactionHash).toBe(send.signature);
    expect(record?.receiptTransactionHash === null).toBe(state === 'untouched');
  }
  expect(states.size).toBe(3);
  expect(records.size).toBe(sends.length + solana.world.received.length);
});

test('execution inputs of both directions are what the official client needs: it hashes the batch and finds the root', async () => {
  const client = new CCIPAPIClient(server.url, { logger: silent });
  const { commits, sends } = solana.world.truth;
  for (const { merkleRoot, minSeqNr, maxSeqNr } of commits) {
    const batch = solana.world.received.filter(
      ({ sequenceNumber }) => minSeqNr <= sequenceNumber && sequenceNumber <= maxSeqNr,
    );
    for (const message of batch)
      expect(await client.getExecutionInput(messageIdOf(message))).toMatchObject({
        offRamp: solana.world.programs.offRamp,
        merkleRoot: toHex(merkleRoot),
      });
  }
  const committed = sends.filter(({ messageId }) => records.get(messageId)?.status !== 'SOURCE_FINALIZED');
  expect(committed.length).toBeGreaterThan(5);
  for (const { messageId } of committed) {
    const { offRamp, merkleRoot } = await client.getExecutionInput(messageId);
    expect(offRamp.toLowerCase()).toBe(solana.evm.offRamp.toLowerCase());
    expect(merkleRoot).toMatch(/^0x[0-9a-f]{64}$/);
  }
});
