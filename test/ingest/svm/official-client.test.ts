// @module-tag slow: loads the official client and asks it for every transaction of a world
/**
 * The official client on a world of a virtual cluster. It decodes what truly happened, and what it decodes
 * is what our API serves, field by field; where it is wrong, we differ, and a test says why.
 */
import { getAddress } from 'viem';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Message } from '../../../src/domain/message.ts';
import { type RunningServer, startServer } from '../../api/running-server.ts';
import { CCIPAPIClient, type SdkLane, type SdkRequest } from '../../lab/sdk.ts';
import { type SdkSolanaChain, SolanaChain, silent } from '../../lab/sdk-chain.ts';
import { discriminator } from '../../solana/ccip-events.ts';
import { createSolanaWorld, type SolanaWorld } from '../../solana/ccip-world.ts';
import { type SolanaProvider, startSolanaProvider } from '../../solana/endpoint/node.ts';
import { type EvmMessage, leafOf, messageIdOf } from '../../solana/received-messages.ts';
import { fromHex, string, toHex } from '../../solana/runtime/bytes.ts';
import type { LedgerTransaction } from '../../solana/runtime/runtime.ts';
import { createTraffic } from '../../solana/traffic.ts';
import { differencesFrom, indexOnce, recordsOf, sourceOf, storeReceived } from './indexed-world.ts';

const sentEvent = toHex(discriminator('event', 'CCIPMessageSent'));
let world: SolanaWorld;
let forged: Readonly<Record<'failed send' | 'failed commit' | 'ownEvent', LedgerTransaction>>;
let provider: SolanaProvider;
let chain: SdkSolanaChain;
let server: RunningServer;
let records: ReadonlyMap<string, Message>;

beforeAll(async () => {
  world = createSolanaWorld();
  createTraffic(world, { seed: 'official client' })(150);
  forged = {
    'failed send': world.forge('failed send'),
    'failed commit': world.forge('failed commit'),
    ownEvent: world.forge('ownEvent'),
  };
  world.settle();
  provider = await startSolanaProvider(world.cluster);
  chain = await SolanaChain.fromUrl(provider.url.href, { apiClient: null, logger: silent });
  server = await startServer();
  await storeReceived(server.store, world);
  await indexOnce(server.store, sourceOf(world, [provider]));
  records = await recordsOf(server.store);
});
afterAll(async () => {
  chain?.destroy();
  await server?.close();
  await provider?.close();
});

/** Messages in a transaction, for a new client: one remembers versions of programs. */
async function idsIn(signature: string): Promise<readonly string[]> {
  const client = await SolanaChain.fromUrl(provider.url.href, { apiClient: null, logger: silent });
  return (await client.getMessagesInTx(signature)).map(({ message }) => message.messageId);
}

/** What our API gives to the client for a message is what it has decoded itself. */
async function expectOurs({ message, lane, log, tx }: SdkRequest): Promise<void> {
  const ours = await new CCIPAPIClient(server.url, { logger: silent }).getMessageById(message.messageId);
  const { sequenceNumber, nonce, sender, receiver, data, feeToken, feeTokenAmount, gasLimit } = message;
  expect(ours.message).toMatchObject({
    ...{ messageId: message.messageId, sequenceNumber, nonce, sender, receiver, data },
    ...{ feeToken, feeTokenAmount, gasLimit },
    allowOutOfOrderExecution: message.allowOutOfOrderExecution,
    tokenAmounts: message.tokenAmounts.map(
      ({ sourcePoolAddress, destTokenAddress, amount, extraData, destGasAmount }) => ({
        ...{ sourcePoolAddress, destTokenAddress, amount, extraData, destGasAmount },
      }),
    ),
  });
  expect(ours.lane).toMatchObject({ ...lane, version: '1.6.0' });
  const { transactionHash, address, index, blockNumber } = log;
  expect(ours.log).toMatchObject({ transactionHash, address, index, blockNumber });
  expect([ours.tx.from, ours.tx.timestamp]).toEqual([tx.from, tx.timestamp]);
}

describe('sends', () => {
  test('are the same in the world, for the client and in our API, field by field', async () => {
    const readable = world.truth.sends.filter(({ trace }) => trace === 'log');
    expect(readable.length).toBeGreaterThan(10);
    for (const sent of readable) {
      const { body } = sent;
      const [request, ...others] = await chain.getMessagesInTx(sent.signature);
      expect(others).toEqual([]);
      const { message, log, tx, lane } = request as NonNullable<typeof request>;
      expect(message).toMatchObject({
        ...body.header,
        messageId: sent.messageId,
        sender: body.sender,
        data: toHex(body.data),
        feeToken: body.feeToken,
        feeTokenAmount: body.feeTokenAmount,
        feeValueJuels: body.feeValueJuels,
        extraArgs: toHex(body.extraArgs),
        allowOutOfOrderExecution: body.header.nonce === 0n,
      });
      expect(fromHex(message.receiver)).toEqual(body.receiver.slice(12));
      expect(message.tokenAmounts).toMatchObject(
        body.tokenAmounts.map(({ sourcePoolAddress, amount, extraData, destExecData }) => ({
          sourcePoolAddress,
          amount,
          extraData: toHex(extraData),
          destExecData: toHex(destExecData),
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
      await expectOurs(request as SdkRequest);
    }
  });

  test('whose log is cut off are ours, and missed by the client, which does not read the relayed copy', async () => {
    const cut = world.truth.sends.filter(({ trace }) => trace !== 'log');
    expect(cut.length).toBeGreaterThan(0);
    for (const { signature, messageId, body } of cut) {
      await expect(chain.getMessagesInTx(signature)).rejects.toMatchObject({
        code: 'MESSAGE_NOT_FOUND_IN_TX',
      });
      expect(records.get(messageId)).toMatchObject({
        sendTransactionHash: signature,
        data: toHex(body.data),
      });
    }
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

test('leaves of messages to Solana are the same for the client', () => {
  expect(world.received.length).toBeGreaterThan(10);
  for (const message of world.received) {
    const { lane, message: decoded } = requestOf(message);
    const leafHasher = SolanaChain.getDestLeafHasher(lane, { logger: silent });
    expect(leafHasher(decoded)).toBe(toHex(leafOf(message)));
  }
});

test('commits are the same for the client, unless a log was cut off', async () => {
  const readable = world.truth.commits.filter(({ logIndex }) => logIndex !== undefined);
  expect(readable.length).toBeGreaterThan(3);
  for (const commit of readable) {
    const message = world.received.find(({ sequenceNumber }) => sequenceNumber === commit.minSeqNr);
    const { report, log } = await chain.getVerifications({
      offRamp: world.programs.offRamp,
      request: requestOf(message as EvmMessage),
    });
    const { sourceChainSelector, minSeqNr, maxSeqNr, merkleRoot } = commit;
    const root = { sourceChainSelector, minSeqNr, maxSeqNr, merkleRoot: toHex(merkleRoot) };
    expect(report).toMatchObject(root);
    expect(report.onRampAddress.toLowerCase()).toBe(toHex(commit.onRampAddress));
    expect(log.transactionHash).toBe(commit.signature);
  }
});

test('executions are the same for the client and in our API, and the client also has those that a later instruction took back', async () => {
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
  expect(await differencesFrom(world, server.store)).toEqual([]);
});

test('what failed, and what any program says that calls itself a router, is true for the client and not for us', async () => {
  // Signatures of a commit are checked after its event; the same root is no commit of the world.
  const { error, logs } = await chain.getTransaction(forged['failed commit'].signature);
  expect(error).toEqual({ InstructionError: [1, { Custom: 9_002 }] });
  const [report] = logs.flatMap((log) => SolanaChain.decodeCommits(log) ?? []);
  expect(report).toMatchObject({ merkleRoot: `0x${'bd'.repeat(32)}` });
  expect(world.truth.commits.map(({ merkleRoot }) => toHex(merkleRoot))).not.toContain(report?.merkleRoot);

  const { logs: own } = await chain.getTransaction(forged.ownEvent.signature);
  const emitter = own.find(({ topics }) => topics[0] === sentEvent)?.address ?? '';
  expect(emitter).not.toBe(world.programs.router);
  const version = discriminator('global', 'type_version');
  world.cluster.answerSimulation(emitter, version, string('ccip-router 1.6.3'));
  for (const { signature } of [forged['failed send'], forged.ownEvent]) {
    const [id = '', ...others] = await idsIn(signature);
    expect(id).toMatch(/^0x[0-9a-f]{64}$/);
    expect(others).toEqual([]);
    expect(records.has(id)).toBe(false);
  }
});
