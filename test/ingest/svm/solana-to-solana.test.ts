// @module-tag slow: indexes two clusters and loads the official client
/**
 * Lanes between two Solana clusters. No such lane is deployed; the programs have the arguments and the hashes for it, and
 * both ends are read by the same code. Program ids are the same on both clusters, as they are on mainnet and devnet.
 */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import type { Message } from '../../../src/domain/message.ts';
import { findNetwork, type Network } from '../../../src/domain/networks/networks.ts';
import { startIndexer } from '../../../src/ingest/engine/indexer.ts';
import { connectNetwork } from '../../../src/ingest/families.ts';
import type { Store } from '../../../src/store/store.ts';
import { briefly } from '../../chain/faulty-node.ts';
import { allRecords, hurriedTiming } from '../../chain/indexing.ts';
import { openTestStore } from '../../database.ts';
import { calculateManualExecProof, type SdkMessage, silent } from '../../lab/sdk-chain.ts';
import { deployedPrograms } from '../../solana/ccip-accounts.ts';
import { createSolanaWorld, type SolanaWorld } from '../../solana/ccip-world.ts';
import { startSolanaProvider } from '../../solana/endpoint/provider.ts';
import { type SolanaMessage, solanaMessageOf } from '../../solana/received-messages.ts';
import { pubkey, toHex } from '../../solana/runtime/bytes.ts';
import type { TrueSend } from '../../solana/truth.ts';
import type { Remote } from '../../solana/world-options.ts';
import { sourceOf } from './indexed-world.ts';

const sdkEntry = createRequire(new URL('../../lab/', import.meta.url)).resolve('@chainlink/ccip-sdk');
const { decodeMessage } = (await import(pathToFileURL(sdkEntry).href)) as {
  /** What the client makes of an element of `messageBatch`. */
  decodeMessage(json: string): SdkMessage;
};

function clusterNamed(name: string): Remote {
  return { network: findNetwork(name) as Network, onRamp: toHex(pubkey(deployedPrograms.router)) };
}
const [mainnet, testnet] = [clusterNamed('solana-mainnet'), clusterNamed('solana-testnet')];

function arrivalOf({ body, svm }: TrueSend): SolanaMessage {
  if (!svm) throw new Error('A message to another family');
  return solanaMessageOf(deployedPrograms.router, body, svm);
}

async function indexBoth(store: Store, worlds: readonly SolanaWorld[]): Promise<void> {
  const sources = [];
  for (const world of worlds) {
    const provider = await startSolanaProvider(world.cluster);
    onTestFinished(() => provider.close());
    sources.push(sourceOf(world, [provider], { offramps: [world.programs.offRamp] }));
  }
  await startIndexer({
    sources,
    connect: connectNetwork,
    store,
    signal: new AbortController().signal,
    userAgent: 'lanescan-test',
    notice: () => undefined,
    once: true,
    timing: { ...hurriedTiming, endpoints: briefly },
  }).ended;
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
  for (const world of [source, dest]) world.settle();

  const store = await openTestStore();
  onTestFinished(() => store.close());
  await indexBoth(store, [source, dest]);
  const records = new Map(
    [...(await allRecords(store))].map(([id, text]) => [id, JSON.parse(text) as Message]),
  );

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
  for (const { messageId } of sends.slice(0, 4)) {
    const inputs = await store.executionInputs(messageId.slice(2));
    if (inputs?.kind !== 'batch') throw new Error(JSON.stringify(inputs));
    const { merkleRoot } = calculateManualExecProof(
      inputs.batch.map((text) => decodeMessage(text)),
      lane,
      messageId,
      inputs.merkleRoot,
      { logger: silent },
    );
    expect(merkleRoot).toBe(toHex(commit.merkleRoot));
    expect(inputs.offramp).toBe(dest.programs.offRamp);
  }
});
