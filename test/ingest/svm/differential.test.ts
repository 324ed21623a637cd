// @module-tag slow: indexes a world that ran in Solana's virtual machine and asks the official client for all of it
/**
 * Our records against the official client on the same endpoint: every message, commit and execution that it decodes is
 * ours, field by field. Where it is wrong, we differ, and a test says why.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Message } from '../../../src/domain/message.ts';
import { type RunningServer, startServer } from '../../api/running-server.ts';
import { allRecords } from '../../chain/indexing.ts';
import { CCIPAPIClient, type SdkRequest } from '../../lab/sdk.ts';
import { silent } from '../../lab/sdk-chain.ts';
import { type SdkSolanaChain, SolanaChain } from '../../lab/svm/sdk-solana.ts';
import { createVmRuntime } from '../../lab/svm/vm-runtime.ts';
import { createSolanaWorld, type SolanaWorld } from '../../solana/ccip-world.ts';
import { type SolanaProvider, startSolanaProvider } from '../../solana/endpoint/provider.ts';
import { messageIdOf } from '../../solana/evm-messages.ts';
import { toHex } from '../../solana/runtime/bytes.ts';
import { customFailure } from '../../solana/runtime/runtime.ts';
import { makeTraffic } from '../../solana/traffic.ts';
import { indexOnce, sourceOf, storeReceived } from './indexed-world.ts';

let world: SolanaWorld;
let provider: SolanaProvider;
let chain: SdkSolanaChain;
let server: RunningServer;
let records: ReadonlyMap<string, Message>;

beforeAll(async () => {
  world = createSolanaWorld({ run: createVmRuntime() });
  makeTraffic(world, { seed: 'differential', steps: 150, failures: [customFailure(6_001)] });
  world.settle();
  provider = await startSolanaProvider(world.cluster);
  chain = await SolanaChain.fromUrl(provider.url.href, { apiClient: null, logger: silent });
  server = await startServer();
  await storeReceived(server.store, world);
  await indexOnce(server.store, sourceOf(world, [provider]));
  records = new Map(
    [...(await allRecords(server.store))].map(([id, text]) => [id, JSON.parse(text) as Message]),
  );
});
afterAll(async () => {
  await server?.close();
  await provider?.close();
});

/** All transactions that name the router or the off-ramp. */
function signatures(): readonly string[] {
  const { cluster, programs } = world;
  const listed = [programs.router, programs.offRamp].flatMap((program) =>
    cluster.signaturesFor(program, { upTo: cluster.head, limit: 10_000 }).map(({ signature }) => signature),
  );
  return [...new Set(listed)];
}

/** The messages that the client finds in a transaction; empty where it throws, for want of a message or of a router. */
async function requestsIn(signature: string): Promise<readonly SdkRequest[]> {
  return chain.getMessagesInTx(signature).catch(() => []);
}

test('every message that the client decodes in a successful transaction is ours, as our API gives it to the client', async () => {
  let compared = 0;
  for (const signature of signatures()) {
    if ((await chain.getTransaction(signature)).error) continue;
    for (const request of await requestsIn(signature)) {
      const ours = await new CCIPAPIClient(server.url, { logger: silent }).getMessageById(
        request.message.messageId,
      );
      const { message } = request;
      expect(ours.message).toMatchObject({
        messageId: message.messageId,
        sequenceNumber: message.sequenceNumber,
        nonce: message.nonce,
        sender: message.sender,
        receiver: message.receiver,
        data: message.data,
        feeToken: message.feeToken,
        feeTokenAmount: message.feeTokenAmount,
        gasLimit: message.gasLimit,
        allowOutOfOrderExecution: message.allowOutOfOrderExecution,
      });
      expect(ours.message.tokenAmounts).toMatchObject(
        message.tokenAmounts.map(
          ({ sourcePoolAddress, destTokenAddress, amount, extraData, destGasAmount }) => ({
            sourcePoolAddress,
            destTokenAddress,
            amount,
            extraData,
            destGasAmount,
          }),
        ),
      );
      expect(ours.lane).toMatchObject({ ...request.lane, version: '1.6.0' });
      expect(ours.log).toMatchObject({
        transactionHash: request.log.transactionHash,
        address: request.log.address,
        index: request.log.index,
        blockNumber: request.log.blockNumber,
      });
      expect([ours.tx.from, ours.tx.timestamp]).toEqual([request.tx.from, request.tx.timestamp]);
      compared++;
    }
  }
  expect(compared).toBe(world.truth.sends.filter(({ trace }) => trace === 'log').length);
  expect(compared).toBeGreaterThan(10);
});

test('every execution that the client decodes is ours', async () => {
  let compared = 0;
  for (const message of world.received) {
    const messageId = messageIdOf(message);
    const receipts = [];
    for await (const one of chain.getExecutionReceipts({
      offRamp: world.programs.offRamp,
      messageId,
      sourceChainSelector: message.sourceChainSelector,
      startTime: 1,
    }))
      receipts.push(one);
    const last = receipts.find(({ receipt }) => receipt.state === 2) ?? receipts.at(-1);
    if (!last) continue;
    const record = records.get(messageId);
    expect(record).toMatchObject({
      status: last.receipt.state === 2 ? 'SUCCESS' : 'FAILED',
      receiptTransactionHash: last.log.transactionHash,
    });
    expect(Date.parse(record?.receiptTimestamp ?? '') / 1_000).toBe(last.timestamp);
    compared++;
  }
  expect(compared).toBeGreaterThan(10);
});

test('every root that the client decodes in a successful transaction is ours', async () => {
  let compared = 0;
  for (const signature of signatures()) {
    const { error, logs } = await chain.getTransaction(signature);
    if (error) continue;
    const own = logs.filter(({ address }) => address === world.programs.offRamp);
    for (const report of own.flatMap((log) => SolanaChain.decodeCommits(log) ?? [])) {
      const inRoot = [...records.values()].filter(
        ({ sourceNetworkInfo, sequenceNumber }) =>
          sourceNetworkInfo.chainSelector === report.sourceChainSelector.toString() &&
          BigInt(sequenceNumber) >= report.minSeqNr &&
          BigInt(sequenceNumber) <= report.maxSeqNr,
      );
      expect(BigInt(inRoot.length)).toBe(report.maxSeqNr - report.minSeqNr + 1n);
      for (const { status } of inRoot) expect(['COMMITTED', 'FAILED', 'SUCCESS']).toContain(status);
      compared++;
    }
  }
  expect(compared).toBeGreaterThan(3);
});

describe('where we differ from the client', () => {
  test('nothing of a failed transaction is a message: the client decodes it, and nothing of it happened', async () => {
    let differing = 0;
    for (const signature of signatures()) {
      if (!(await chain.getTransaction(signature)).error) continue;
      for (const { message } of await requestsIn(signature)) {
        expect(records.has(message.messageId)).toBe(false);
        differing++;
      }
    }
    expect(differing).toBeGreaterThan(0);
  });

  test('messages whose log was cut off are ours: the client does not read the relayed copy', async () => {
    const cut = world.truth.sends.filter(({ trace }) => trace === 'relayed copy');
    expect(cut.length).toBeGreaterThan(0);
    for (const { signature, messageId, body } of cut) {
      expect(await requestsIn(signature)).toEqual([]);
      expect(records.get(messageId)).toMatchObject({
        sendTransactionHash: signature,
        data: toHex(body.data),
      });
    }
  });
});
