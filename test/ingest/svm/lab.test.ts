// @module-tag slow: starts chain nodes with real contracts beside Solana's virtual machine
/** Lanes of the lab between real EVM contracts and Solana's virtual machine, both ways. */
import { getAddress } from 'viem';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readSetting } from '../../../src/base/settings.ts';
import type { Message } from '../../../src/domain/message.ts';
import { startIndexer } from '../../../src/ingest/engine/indexer.ts';
import { connectNetwork, networksSetting } from '../../../src/ingest/families.ts';
import { allRecords, FINALITY, hurriedTiming, labSource } from '../../chain/indexing.ts';
import { openTestStore } from '../../database.ts';
import { type Lab, startLab } from '../../lab/lab.ts';
import {
  createSolanaTraffic,
  type SolanaLabNetwork,
  startSolanaNetwork,
} from '../../lab/svm/solana-network.ts';
import { messageIdOf } from '../../solana/evm-messages.ts';

let lab: Lab;
let solana: SolanaLabNetwork;
let records: ReadonlyMap<string, Message>;

const ROUNDS = 25;
const SLOTS_A_ROUND = 15;

beforeAll(async () => {
  lab = await startLab({ versions: ['1.6'] });
  solana = await startSolanaNetwork(lab.a);
  const traffic = createSolanaTraffic(solana, lab.a.foundation.receiver.address, 'lab test');
  for (let round = 0; round < ROUNDS; round++) {
    await traffic.round();
    solana.world.cluster.grow(SLOTS_A_ROUND);
  }
  solana.world.settle();
  await lab.a.mine(FINALITY + 1);
  const store = await openTestStore();
  try {
    const [source] = readSetting(networksSetting, [solana.configuration], ['networks']);
    if (!source) throw new Error('The configuration has no network.');
    await startIndexer({
      sources: [labSource(lab.a), source],
      connect: connectNetwork,
      store,
      signal: new AbortController().signal,
      userAgent: 'lanescan-test',
      notice: () => undefined,
      once: true,
      timing: hurriedTiming,
    }).ended;
    records = new Map([...(await allRecords(store))].map(([id, text]) => [id, JSON.parse(text) as Message]));
  } finally {
    await store.close();
  }
});
afterAll(async () => {
  await solana?.stop();
  await lab?.stop();
});

test('what real contracts send to Solana is committed and executed there', () => {
  const { received, truth } = solana.world;
  expect(received.length).toBeGreaterThan(10);
  for (const message of received) {
    const messageId = messageIdOf(message);
    const attempts = truth.executions.filter((execution) => execution.messageId === messageId);
    const success = attempts.find(({ isSuccess }) => isSuccess);
    const isCommitted = truth.commits.some(({ maxSeqNr }) => message.sequenceNumber <= maxSeqNr);
    expect(records.get(messageId), messageId).toMatchObject({
      status: success
        ? 'SUCCESS'
        : attempts.length > 0
          ? 'FAILED'
          : isCommitted
            ? 'COMMITTED'
            : 'SOURCE_FINALIZED',
      receiptTransactionHash: (success ?? attempts.at(-1))?.signature ?? null,
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
