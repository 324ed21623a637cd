/** Inputs of manual executions for lanes with Solana, both ways: the official client makes the committed root of them. */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import type { Hex } from 'viem';
import { expect, onTestFinished, test } from 'vitest';
import type { RangeFact } from '../../../src/domain/facts.ts';
import type { GenuineContract } from '../../../src/ingest/evm/contracts/contracts.ts';
import { createDecoder } from '../../../src/ingest/evm/decode/decoder.ts';
import type { ChainLog } from '../../../src/ingest/evm/rpc/chain.ts';
import type { Store } from '../../../src/store/store.ts';
import { openTestStore } from '../../database.ts';
import { calculateManualExecProof, type SdkMessage, silent } from '../../lab/sdk-chain.ts';
import { ccipMessageSent } from '../../solana/ccip-events.ts';
import { createSolanaWorld, type SolanaWorld } from '../../solana/ccip-world.ts';
import { startSolanaProvider } from '../../solana/endpoint/provider.ts';
import { messageSent } from '../../solana/evm-counterpart.ts';
import { type EvmMessage, messageIdOf } from '../../solana/evm-messages.ts';
import { toHex } from '../../solana/runtime/bytes.ts';
import { sepolia } from '../../solana/world-options.ts';
import { answeringNode } from '../evm/answering-node.ts';
import { indexOnce, sourceOf } from './indexed-world.ts';

const sdkEntry = createRequire(new URL('../../lab/', import.meta.url)).resolve('@chainlink/ccip-sdk');
const { SolanaChain, decodeMessage } = (await import(pathToFileURL(sdkEntry).href)) as {
  SolanaChain: { decodeMessage(log: { readonly data: string }): SdkMessage | undefined };
  /** What the client makes of an element of `messageBatch`. */
  decodeMessage(json: string): SdkMessage;
};

async function index(world: SolanaWorld): Promise<Store> {
  world.settle();
  const provider = await startSolanaProvider(world.cluster);
  onTestFinished(() => provider.close());
  const store = await openTestStore();
  onTestFinished(() => store.close());
  await indexOnce(store, sourceOf(world, [provider], { offramps: [world.programs.offRamp] }));
  return store;
}

/** The root that the client makes of the inputs that we serve for a message. */
async function servedRoot(store: Store, messageId: string, lane: object): Promise<string> {
  const inputs = await store.executionInputs(messageId.slice(2));
  if (inputs?.kind !== 'batch') throw new Error(JSON.stringify(inputs));
  const batch = inputs.batch.map((text) => decodeMessage(text));
  const { merkleRoot } = calculateManualExecProof(
    batch,
    lane as Parameters<typeof calculateManualExecProof>[1],
    messageId,
    inputs.merkleRoot,
    { logger: silent },
  );
  expect(merkleRoot).toBe(inputs.merkleRoot);
  return merkleRoot;
}

test('from Solana to EVM: the root is the one of the messages that the client decodes itself', async () => {
  const world = createSolanaWorld();
  const sends = [
    world.send({ tokens: [5n, 6n] }),
    world.send({ isOrdered: true }),
    world.send({ data: '0x' }),
  ];
  const store = await index(world);
  const lane = {
    sourceChainSelector: BigInt(world.network.selector),
    destChainSelector: BigInt(sepolia.network.selector),
    onRamp: world.programs.router,
    version: '1.6.0',
  };
  const decoded = sends.map(({ body }) => {
    const message = SolanaChain.decodeMessage({
      data: Buffer.from(ccipMessageSent(body)).toString('base64'),
    });
    if (!message) throw new Error('The client does not decode the event');
    return message;
  });
  const [first] = sends;
  const { merkleRoot } = calculateManualExecProof(decoded, lane, first?.messageId ?? '', undefined, {
    logger: silent,
  });
  const committed: RangeFact = {
    kind: 'Committed',
    lane: {
      sourceChainSelector: world.network.selector,
      destChainSelector: sepolia.network.selector,
      onramp: world.programs.router,
    },
    fromSequenceNumber: '1',
    toSequenceNumber: '3',
    merkleRoot,
    offramp: `0x${'0f'.repeat(20)}`,
    seen: {
      network: sepolia.network.selector,
      blockNumber: 9,
      blockHash: `0x${'09'.repeat(32)}`,
      transactionHash: `0x${'08'.repeat(32)}`,
      logIndex: 1,
      at: new Date().toISOString(),
    },
  };
  await store.apply([committed]);
  for (const { messageId } of sends) expect(await servedRoot(store, messageId, lane)).toBe(merkleRoot);
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
  const store = await index(world);
  const facts = await decodedOnSource(messages);
  await store.apply(facts);
  const lane = {
    sourceChainSelector: BigInt(sepolia.network.selector),
    destChainSelector: BigInt(world.network.selector),
    onRamp: sepolia.onRamp,
    version: '1.6.0',
  };
  for (const message of messages) {
    expect(await servedRoot(store, messageIdOf(message), lane)).toBe(toHex(commit.merkleRoot));
  }
});

/** What the EVM family makes of the events with which these messages were sent. */
async function decodedOnSource(messages: readonly EvmMessage[]) {
  const timestamp = 1_750_000_000;
  const onRamp = {
    address: sepolia.onRamp,
    role: 'onRamp',
    version: '1.6.0',
    typeAndVersion: 'OnRamp 1.6.0',
  } as GenuineContract;
  const logs = messages.map((message): ChainLog => {
    const { topics, data } = messageSent(message);
    return {
      address: sepolia.onRamp,
      topics,
      data,
      blockNumber: 5,
      blockHash: `0x${'05'.repeat(32)}`,
      transactionHash: `0x${'06'.repeat(32)}`,
      logIndex: Number(message.sequenceNumber),
      blockTimestamp: timestamp,
    };
  });
  const node = answeringNode({
    transaction: (hash: Hex) => ({ hash, from: `0x${'a1'.repeat(20)}`, to: null, input: '0x' }),
  });
  const { facts, unreadable } = await createDecoder(sepolia.network).decode(
    node,
    logs,
    new Map([[sepolia.onRamp, onRamp]]),
  );
  expect(unreadable).toEqual([]);
  return facts;
}
