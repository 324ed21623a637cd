/** Inputs of manual executions for lanes with Solana, both ways: the official client makes the committed root of them. */
import { expect, test } from 'vitest';
import { calculateManualExecProof, SolanaChain, silent } from '../../lab/sdk-chain.ts';
import { ccipMessageSent } from '../../solana/ccip-events.ts';
import { createSolanaWorld } from '../../solana/ccip-world.ts';
import { messageIdOf } from '../../solana/received-messages.ts';
import { toHex } from '../../solana/runtime/bytes.ts';
import { sepolia } from '../../solana/world-options.ts';
import { committedOnSepolia, indexWorld } from './indexed-world.ts';
import { servedRoot } from './served-root.ts';

test('from Solana to EVM: the root is the one of the messages that the client decodes itself', async () => {
  const world = createSolanaWorld();
  const sends = [
    world.send({ tokens: [5n, 6n] }),
    world.send({ isOrdered: true }),
    world.send({ data: '0x' }),
  ];
  const { store } = await indexWorld(world);
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
  const lane = {
    sourceChainSelector: BigInt(sepolia.network.selector),
    destChainSelector: BigInt(world.network.selector),
    onRamp: sepolia.onRamp,
    version: '1.6.0',
  };
  const merkleRoot = toHex(commit.merkleRoot);
  for (const message of messages)
    expect(await servedRoot(store, messageIdOf(message), lane)).toMatchObject({
      merkleRoot,
      committed: merkleRoot,
    });
});
