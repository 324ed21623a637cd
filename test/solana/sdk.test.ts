// @module-tag slow: loads the official client and asks it for every transaction of a world
/**
 * The official client against the truth of a world that ran in Solana's virtual machine: it decodes the same messages,
 * commits and executions from the same endpoint, except where it is wrong, which is said.
 */
import { getAddress } from 'viem';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { SdkLane } from '../lab/sdk.ts';
import { silent } from '../lab/sdk-chain.ts';
import { type SdkSolanaChain, SolanaChain } from '../lab/svm/sdk-solana.ts';
import { createVmRuntime } from '../lab/svm/vm-runtime.ts';
import { versionText } from './ccip-accounts.ts';
import { discriminator } from './ccip-events.ts';
import { createSolanaWorld, type SolanaWorld } from './ccip-world.ts';
import { type SolanaProvider, startSolanaProvider } from './endpoint/provider.ts';
import { type EvmMessage, messageIdOf } from './evm-messages.ts';
import { leafOf } from './received-messages.ts';
import { fromHex, toHex } from './runtime/bytes.ts';
import { customFailure } from './runtime/runtime.ts';
import { makeTraffic } from './traffic.ts';
import { sepolia } from './world-options.ts';

const remoteSelector = BigInt(sepolia.network.selector);
const sentEvent = toHex(discriminator('event', 'CCIPMessageSent'));
let world: SolanaWorld;
let provider: SolanaProvider;
let chain: SdkSolanaChain;

beforeAll(async () => {
  world = createSolanaWorld({ run: createVmRuntime() });
  makeTraffic(world, { seed: 'official client', steps: 120, failures: [customFailure(6_001)] });
  world.settle();
  provider = await startSolanaProvider(world.cluster);
  chain = await SolanaChain.fromUrl(provider.url.href, { apiClient: null, logger: silent });
});
afterAll(async () => {
  chain?.destroy?.();
  await provider?.close();
});

/** Messages in a transaction, or why there are none. */
const idsIn = async (signature: string): Promise<readonly string[] | string> => {
  try {
    return (await chain.getMessagesInTx(signature)).map(({ message }) => message.messageId);
  } catch (error) {
    return (error as { readonly code?: string }).code ?? String(error);
  }
};

test('it knows the cluster and its programs', async () => {
  const { router, offRamp } = world.programs;
  expect(chain.network.name).toBe('solana-devnet');
  // It knows 1.6.3 as 1.6.0.
  expect((await chain.typeAndVersion(router)).slice(0, 2)).toEqual(['CCIPRouter', '1.6.0']);
  expect(await chain.getOffRampsForRouter(router, remoteSelector)).toEqual([offRamp]);
  expect(await chain.getRouterForOffRamp(offRamp, remoteSelector)).toBe(router);
  const [onRamp = ''] = await chain.getOnRampsForOffRamp(offRamp, remoteSelector);
  expect(onRamp.toLowerCase()).toBe(sepolia.onRamp);
});

describe('sends', () => {
  test('are the same, field by field', async () => {
    const readable = world.truth.sends.filter(({ trace }) => trace === 'log');
    expect(readable.length).toBeGreaterThan(10);
    for (const sent of readable) {
      const { body } = sent;
      const [request, ...others] = await chain.getMessagesInTx(sent.signature);
      expect(others).toEqual([]);
      const { message, log, tx, lane } = request as NonNullable<typeof request>;
      expect(message).toMatchObject({
        messageId: sent.messageId,
        sourceChainSelector: body.header.sourceChainSelector,
        destChainSelector: body.header.destChainSelector,
        sequenceNumber: body.header.sequenceNumber,
        nonce: body.header.nonce,
        sender: body.sender,
        data: toHex(body.data),
        feeToken: body.feeToken,
        feeTokenAmount: body.feeTokenAmount,
        feeValueJuels: body.feeValueJuels,
        extraArgs: toHex(body.extraArgs),
        allowOutOfOrderExecution: body.header.nonce === 0n,
      });
      expect(fromHex(message.receiver)).toEqual(body.receiver.slice(12));
      expect(
        message.tokenAmounts.map(({ sourcePoolAddress, amount, extraData, destExecData }) => ({
          sourcePoolAddress,
          amount,
          extraData,
          destExecData,
        })),
      ).toEqual(
        body.tokenAmounts.map((token) => ({
          sourcePoolAddress: token.sourcePoolAddress,
          amount: token.amount,
          extraData: toHex(token.extraData),
          destExecData: toHex(token.destExecData),
        })),
      );
      for (const [index, token] of body.tokenAmounts.entries())
        expect(await chain.getTokenForTokenPool(token.sourcePoolAddress)).toBe(sent.mints[index]);
      expect([lane.onRamp, log.address, log.index, log.transactionHash]).toEqual([
        world.programs.router,
        world.programs.router,
        sent.logIndex,
        sent.signature,
      ]);
      expect([tx.from, tx.blockNumber, tx.timestamp]).toEqual([sent.origin, sent.slot, sent.blockTime]);
    }
  });

  test('of a batch are found by the account of the lane, unless a log was cut off', async () => {
    const fresh = createSolanaWorld({ run: createVmRuntime() });
    const sends = [fresh.send(), fresh.send({ tokens: [3n] }), fresh.send({ isWrapped: true })];
    fresh.settle();
    const served = await startSolanaProvider(fresh.cluster);
    const client = await SolanaChain.fromUrl(served.url.href, { apiClient: null, logger: silent });
    try {
      const [request] = await client.getMessagesInTx(sends[0]?.signature ?? '');
      const batch = await client.getMessagesInBatch(request as NonNullable<typeof request>, {
        minSeqNr: 1n,
        maxSeqNr: 3n,
      });
      expect(batch.map(({ messageId }) => messageId)).toEqual(sends.map(({ messageId }) => messageId));
    } finally {
      await served.close();
    }
  });

  test('whose log is cut off are missed: it does not read the relayed copy', async () => {
    const cut = world.truth.sends.filter(({ trace }) => trace !== 'log');
    expect(cut.length).toBeGreaterThan(0);
    for (const { signature } of cut) expect(await idsIn(signature)).toBe('MESSAGE_NOT_FOUND_IN_TX');
  });
});

/** A message to Solana as the client needs it. */
function requestOf(message: EvmMessage) {
  const lane: SdkLane = {
    sourceChainSelector: message.sourceChainSelector,
    destChainSelector: message.destChainSelector,
    onRamp: getAddress(message.onRamp),
    version: '1.6.0',
  };
  return {
    lane,
    message: {
      ...message,
      messageId: messageIdOf(message),
      nonce: 0n,
      tokenAmounts: message.tokens.map((token) => ({ ...token, destGasAmount: BigInt(token.destGasAmount) })),
      computeUnits: BigInt(message.computeUnits),
      accountIsWritableBitmap: message.isWritableBitmap,
    },
    tx: { timestamp: 1 },
  };
}

test('leaves of messages to Solana are the same', () => {
  expect(world.received.length).toBeGreaterThan(10);
  for (const message of world.received) {
    const { lane, message: decoded } = requestOf(message);
    const leafHasher = SolanaChain.getDestLeafHasher(lane, { logger: silent });
    expect(leafHasher(decoded)).toBe(toHex(leafOf(message)));
  }
});

test('commits are the same, unless a log was cut off', async () => {
  const readable = world.truth.commits.filter(({ logIndex }) => logIndex !== undefined);
  expect(readable.length).toBeGreaterThan(3);
  for (const commit of readable) {
    const message = world.received.find(({ sequenceNumber }) => sequenceNumber === commit.minSeqNr);
    const { report, log } = await chain.getVerifications({
      offRamp: world.programs.offRamp,
      request: requestOf(message as EvmMessage),
    });
    expect(report).toMatchObject({
      sourceChainSelector: commit.sourceChainSelector,
      minSeqNr: commit.minSeqNr,
      maxSeqNr: commit.maxSeqNr,
      merkleRoot: toHex(commit.merkleRoot),
    });
    expect(report.onRampAddress.toLowerCase()).toBe(toHex(commit.onRamp));
    expect(log.transactionHash).toBe(commit.signature);
  }
});

test('executions are the same, and it has those too that a later instruction took back', async () => {
  const { offRamp } = world.programs;
  let looked = 0;
  let takenBack = 0;
  for (const message of world.received) {
    const messageId = messageIdOf(message);
    const expected = world.truth.executions.filter(
      (execution) => execution.messageId === messageId && execution.logIndex !== undefined,
    );
    const receipts: unknown[] = [];
    // It stops by itself at a success.
    for await (const { receipt, log, timestamp } of chain.getExecutionReceipts({
      offRamp,
      messageId,
      sourceChainSelector: message.sourceChainSelector,
      startTime: 1,
    })) {
      const meta = world.cluster.transaction(log.transactionHash)?.meta;
      if (meta?.err != null && meta.logMessages.includes(`Program ${offRamp} success`)) {
        takenBack++;
        continue;
      }
      receipts.push({
        isSuccess: receipt.state === 2,
        sequenceNumber: receipt.sequenceNumber,
        signature: log.transactionHash,
        slot: log.blockNumber,
        logIndex: log.index,
        blockTime: timestamp,
      });
    }
    expect(receipts).toEqual(
      expected.map(({ isSuccess, signature, slot, logIndex, blockTime }) => ({
        isSuccess,
        sequenceNumber: message.sequenceNumber,
        signature,
        slot,
        logIndex,
        blockTime,
      })),
    );
    looked += expected.length;
  }
  expect(looked).toBeGreaterThan(10);
  expect(takenBack).toBeGreaterThan(0);
});

describe('where it is wrong', () => {
  test('a message of a failed transaction is one for it: nothing of it happened', async () => {
    const forged = world.forge('failed send');
    world.settle();
    expect(forged.meta.err).not.toBeNull();
    const [id] = (await idsIn(forged.signature)) as readonly string[];
    expect(id).toMatch(/^0x[0-9a-f]{64}$/);
    expect(world.truth.sends.map(({ messageId }) => messageId)).not.toContain(id);
  });

  test('a root of a failed transaction is one for it: signatures are checked after the event', async () => {
    const forged = world.forge('failed commit');
    world.settle();
    const { error, logs } = await chain.getTransaction(forged.signature);
    expect(error).toEqual({ InstructionError: [1, { Custom: 9_002 }] });
    const reports = logs.flatMap((log) => SolanaChain.decodeCommits(log) ?? []);
    expect(reports).toMatchObject([{ merkleRoot: `0x${'bd'.repeat(32)}` }]);
    expect(world.truth.commits.map(({ merkleRoot }) => toHex(merkleRoot))).not.toContain(
      reports[0]?.merkleRoot,
    );
  });

  test('an event of any program is a message for it, if that program says that it is a router', async () => {
    const forged = world.forge('ownEvent');
    world.settle();
    const { logs } = await chain.getTransaction(forged.signature);
    const emitter = logs.find(({ topics }) => topics[0] === sentEvent)?.address;
    expect(emitter).toBeDefined();
    expect(emitter).not.toBe(world.programs.router);
    world.cluster.answerSimulation(
      emitter ?? '',
      discriminator('global', 'type_version'),
      versionText('ccip-router 1.6.3'),
    );
    const client = await SolanaChain.fromUrl(provider.url.href, { apiClient: null, logger: silent });
    expect(await client.getMessagesInTx(forged.signature)).toHaveLength(1);
  });
});
