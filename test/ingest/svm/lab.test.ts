// @module-tag slow: starts chain nodes with real contracts beside Solana's virtual machine
/** Lanes of the lab between real EVM contracts and Solana's virtual machine, both ways. */
import { getAddress } from 'viem';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readSetting } from '../../../src/base/settings.ts';
import type { Message } from '../../../src/domain/message.ts';
import { networksSetting } from '../../../src/ingest/families.ts';
import { FINALITY, labSource } from '../../chain/indexing.ts';
import { openTestStore } from '../../database.ts';
import { type Lab, startLab } from '../../lab/lab.ts';
import {
  createSolanaTraffic,
  type SolanaLabNetwork,
  startSolanaNetwork,
} from '../../lab/svm/solana-network.ts';
import { messageIdOf } from '../../solana/received-messages.ts';
import { indexOnce, outcomeOf, recordsOf } from './indexed-world.ts';

let lab: Lab;
let solana: SolanaLabNetwork;
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
  const store = await openTestStore();
  try {
    const [source] = readSetting(networksSetting, [solana.configuration], ['networks']);
    if (!source) throw new Error('The configuration has no network.');
    await indexOnce(store, [labSource(lab.a), source]);
    records = await recordsOf(store);
  } finally {
    await store.close();
  }
});
afterAll(async () => {
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
    expect(allowed[state], send.messageId).toContain(records.get(send.messageId)?.status);
  }
  expect(states.size).toBe(3);
  expect(records.size).toBe(sends.length + solana.world.received.length);
});
