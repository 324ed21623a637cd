/**
 * Inputs of manual executions for lanes with Solana, both ways and between two clusters: the official client makes the
 * committed root of them.
 */
import { expect, test } from 'vitest';
import { findNetwork, type Network } from '../../../src/domain/networks/networks.ts';
import type { Store } from '../../../src/store/store.ts';
import type { SdkLane } from '../../lab/sdk.ts';
import { calculateManualExecProof, decodeMessage, silent } from '../../lab/sdk-chain.ts';
import { proveSend } from '../../lab/svm/evm-end.ts';
import { deployedPrograms } from '../../solana/ccip-accounts.ts';
import { createSolanaWorld } from '../../solana/ccip-world.ts';
import { messageIdOf, type SolanaMessage, solanaMessageOf } from '../../solana/received-messages.ts';
import { pubkey, toHex } from '../../solana/runtime/bytes.ts';
import { type Remote, sepolia, type TrueSend } from '../../solana/world-options.ts';
import {
  committedOnSepolia,
  configured,
  indexOnce,
  indexWorld,
  openStore,
  recordsOf,
  serve,
  sourceOf,
} from './indexed-world.ts';

/** The root that the client computes from the stored inputs of a message. */
async function servedRoot(store: Store, messageId: string, lane: SdkLane) {
  const inputs = await store.executionInputs(messageId.slice(2));
  if (inputs?.kind !== 'batch') throw new Error(JSON.stringify(inputs));
  const batch = inputs.batch.map((text) => decodeMessage(text));
  const { merkleRoot } = calculateManualExecProof(batch, lane, messageId, inputs.merkleRoot, {
    logger: silent,
  });
  return { merkleRoot, committed: inputs.merkleRoot, offramp: inputs.offramp };
}

const laneOf = (source: Network, dest: Network, onRamp: string): SdkLane => ({
  sourceChainSelector: BigInt(source.selector),
  destChainSelector: BigInt(dest.selector),
  onRamp,
  version: '1.6.0',
});

test('from Solana to EVM: the root is the one of the messages that the client decodes itself', async () => {
  const world = createSolanaWorld();
  const sends = [
    world.send({ tokens: [5n, 6n] }),
    world.send({ isOrdered: true }),
    world.send({ data: '0x' }),
  ];
  const { store } = await indexWorld(world);
  const lane = laneOf(world.network, sepolia.network, world.programs.router);
  const [first] = sends as [TrueSend, TrueSend, TrueSend];
  const { merkleRoot } = proveSend(first, sends, lane);
  await store.apply([committedOnSepolia(world, { to: 3, merkleRoot })]);
  for (const { messageId } of sends)
    expect(await servedRoot(store, messageId, lane)).toMatchObject({ merkleRoot, committed: merkleRoot });
});

test('from EVM to Solana: the root is the one that the off-ramp on Solana has committed', {
  tags: 'slow',
}, async () => {
  const world = createSolanaWorld();
  const messages = [
    world.receive({ tokens: [7n] }),
    world.receive(),
    world.receive({ tokens: [8n], hasNoReceiver: true }),
  ];
  const commit = world.commit(messages);
  const { store } = await indexWorld(world);
  const lane = laneOf(sepolia.network, world.network, sepolia.onRamp);
  const merkleRoot = toHex(commit.merkleRoot);
  for (const message of messages)
    expect(await servedRoot(store, messageIdOf(message), lane)).toMatchObject({
      merkleRoot,
      committed: merkleRoot,
    });
});

// Between two clusters no lane is deployed; the programs have the arguments and the hashes for it, and both ends are read by
// the same code. Program ids are the same on both, as they are on mainnet and devnet.
function clusterNamed(name: string): Remote {
  return { network: findNetwork(name) as Network, onRamp: toHex(pubkey(deployedPrograms.router)) };
}
const [mainnet, testnet] = [clusterNamed('solana-mainnet'), clusterNamed('solana-testnet')];

function arrivalOf({ body, svm }: TrueSend): SolanaMessage {
  if (!svm) throw new Error('A message to another family');
  return solanaMessageOf(deployedPrograms.router, body, svm);
}

test('a message from one cluster to another is seen whole: sent, committed, failed, executed', {
  tags: 'slow',
}, async () => {
  const source = createSolanaWorld({ network: mainnet.network, remotes: [testnet] });
  const dest = createSolanaWorld({
    network: testnet.network,
    remotes: [mainnet],
    manualExecutionAfterSeconds: 1,
  });
  const sends = [
    source.send({ tokens: [5n] }),
    source.send({ data: '0xbeef', svm: { computeUnits: 1_000, accounts: [] } }),
    source.send(),
    source.send({ isWrapped: true }),
    source.send(),
  ];
  const arrivals = sends.map(arrivalOf);
  for (const arrival of arrivals) dest.accept(arrival);
  const commit = dest.commit(arrivals.slice(0, 4));
  const [first, second, third] = arrivals as [SolanaMessage, SolanaMessage, SolanaMessage];
  const executed = dest.execute(first);
  dest.execute(second, { outcome: 'failure' });
  const retried = dest.execute(second, { isManual: true });
  const failed = dest.execute(third, { outcome: 'failure' });
  // The lane back has the same programs on both ends and numbers of its own.
  const answer = dest.send({ data: '0xac' });
  source.accept(arrivalOf(answer));

  const sources = [];
  for (const world of [source, dest]) {
    world.settle();
    sources.push(sourceOf(world, [await serve(world.cluster)], configured(world)));
  }
  const store = await openStore();
  await indexOnce(store, sources);
  const records = await recordsOf(store);

  expect([...records.keys()].toSorted()).toEqual(
    [...sends, answer].map(({ messageId }) => messageId).toSorted(),
  );
  const receipts = [executed, retried, failed, undefined, undefined];
  const statuses = ['SUCCESS', 'SUCCESS', 'FAILED', 'COMMITTED', 'SOURCE_FINALIZED'];
  for (const [index, sent] of sends.entries()) {
    expect(records.get(sent.messageId), `message ${index + 1}`).toMatchObject({
      status: statuses[index],
      sourceNetworkInfo: { chainSelector: mainnet.network.selector, chainFamily: 'SVM' },
      destNetworkInfo: { chainSelector: testnet.network.selector, chainFamily: 'SVM' },
      sender: sent.body.sender,
      sendTransactionHash: sent.signature,
      sendBlockNumber: sent.slot,
      receiptTransactionHash: receipts[index]?.signature ?? null,
      readyForManualExecution: statuses[index] === 'FAILED' || statuses[index] === 'COMMITTED',
      extraArgs: { computeUnits: sent.svm?.computeUnits, accounts: sent.svm?.accounts },
    });
  }
  expect(records.get(answer.messageId)).toMatchObject({ status: 'SOURCE_FINALIZED', sequenceNumber: '1' });
  for (const { network } of [mainnet, testnet])
    expect(await store.index.checks.findings(network.selector)).toEqual([]);

  const lane = laneOf(mainnet.network, testnet.network, deployedPrograms.router);
  for (const { messageId } of sends.slice(0, 4))
    expect(await servedRoot(store, messageId, lane)).toMatchObject({
      merkleRoot: toHex(commit.merkleRoot),
      offramp: dest.programs.offRamp,
    });
});
