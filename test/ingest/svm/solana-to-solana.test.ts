// @module-tag slow: indexes two clusters and loads the official client
/**
 * Lanes between two Solana clusters. No such lane is deployed; the programs have the arguments and the hashes for it, and
 * both ends are read by the same code. Program ids are the same on both clusters, as they are on mainnet and devnet.
 */
import { expect, test } from 'vitest';
import { findNetwork, type Network } from '../../../src/domain/networks/networks.ts';
import { deployedPrograms } from '../../solana/ccip-accounts.ts';
import { createSolanaWorld } from '../../solana/ccip-world.ts';
import { type SolanaMessage, solanaMessageOf } from '../../solana/received-messages.ts';
import { pubkey, toHex } from '../../solana/runtime/bytes.ts';
import type { TrueSend } from '../../solana/truth.ts';
import type { Remote } from '../../solana/world-options.ts';
import { configured, indexOnce, openStore, recordsOf, serve, sourceOf } from './indexed-world.ts';
import { servedRoot } from './served-root.ts';

function clusterNamed(name: string): Remote {
  return { network: findNetwork(name) as Network, onRamp: toHex(pubkey(deployedPrograms.router)) };
}
const [mainnet, testnet] = [clusterNamed('solana-mainnet'), clusterNamed('solana-testnet')];

function arrivalOf({ body, svm }: TrueSend): SolanaMessage {
  if (!svm) throw new Error('A message to another family');
  return solanaMessageOf(deployedPrograms.router, body, svm);
}

test('a message from one cluster to another is seen whole: sent, committed, failed, executed', async () => {
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

  const lane = {
    sourceChainSelector: BigInt(mainnet.network.selector),
    destChainSelector: BigInt(testnet.network.selector),
    onRamp: deployedPrograms.router,
    version: '1.6.0',
  };
  for (const { messageId } of sends.slice(0, 4))
    expect(await servedRoot(store, messageId, lane)).toMatchObject({
      merkleRoot: toHex(commit.merkleRoot),
      offramp: dest.programs.offRamp,
    });
});
