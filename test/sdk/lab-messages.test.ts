// @module-tag slow: starts chain nodes and the official client for every version
/** Messages of the lab through the official client: what users do with it works at every stage of a message. */
import { describe, expect, test } from 'vitest';
import type { Message } from '../../src/domain/message.ts';
import { drive } from '../lab/driver.ts';
import type { SentMessage, Version } from '../lab/lab.ts';
import { CCIPAPIClient, CCIPError } from '../lab/sdk.ts';
import { EVMChain, silent } from '../lab/sdk-chain.ts';
import { clientErrorOf, createLabService, prepare } from './lab-service.ts';

const service = createLabService();
const { index, recordOf } = service;

/** A new client each time: one remembers what it was told for some seconds. */
const client = () => new CCIPAPIClient(service.server.url, { logger: silent });

const foundBy = async (parameter: string, hash: string) => {
  const answer = await service.server.ask(`/v2/messages?${parameter}=${hash}`);
  expect(answer.status).toBe(200);
  return answer.json<{ data: readonly Message[] }>().data.map(({ messageId }) => messageId);
};

describe.each<readonly [Version]>([['1.2'], ['1.5'], ['1.6'], ['2.0']])('version %s', (version) => {
  test('a message that is not executed has its off-ramp, before its commit and after', async () => {
    const lane = service.lab.lane(version, 'a');
    const first = await lane.sendOne();
    const offRamp = first.ramps.offRamp.address.toLowerCase();
    await index();
    // Before the lane's first commit only the registrations of off-ramps tell it: several versions have one here.
    expect((await recordOf(first)).offramp?.toLowerCase()).toBe(offRamp);
    await prepare(lane, [first]);
    await lane.execute(first);
    const message = await lane.sendOne();
    await index();
    const { metadata } = await client().getMessageById(message.messageId);
    expect(metadata.offRamp?.toLowerCase()).toBe(offRamp);
    await prepare(lane, [message]);
    await index();
    const { lane: found, metadata: after } = await client().getMessageById(message.messageId);
    expect(after.offRamp?.toLowerCase()).toBe(offRamp);
    expect(found.version).toBe(`${version}.0`);
    expect((await recordOf(message)).offramp?.toLowerCase()).toBe(offRamp);
  });

  test('execution inputs before the commit are a conflict, with the reason', async () => {
    const message = await service.lab.lane(version, 'b').sendOne();
    await index();
    if (version === '2.0') {
      // Nothing is committed; what is missing are verifications.
      const answer = await service.server.ask(`/v2/messages/${message.messageId}/execution-inputs`);
      expect(answer.json()).toMatchObject({ verificationComplete: false, ccvData: [] });
      return;
    }
    const { context } = await clientErrorOf(client().getExecutionInput(message.messageId));
    expect(context).toMatchObject({ status: 409, apiErrorCode: 'EXECUTION_INPUTS_NOT_READY' });
    expect(context.apiErrorMessage).toContain('not committed');
  });

  test('a search finds it by each of its transactions', async () => {
    const lane = service.lab.lane(version, 'b');
    // Those that earlier tests left uncommitted come first.
    const pending = (await lane.sentSince(0)).filter((sent) => !lane.commitOf(sent));
    const messages = await lane.send({ count: 2 });
    const [, message] = messages as [SentMessage, SentMessage];
    const transactions = new Map<string, string>([['send', message.transactionHash]]);
    if (version !== '2.0') {
      const commit = await lane.commit([...pending, ...messages]);
      transactions.set('commit', commit.transactionHash);
    }
    if (version === '1.2' || version === '1.5') {
      const [blessing] = await lane.bless(messages);
      transactions.set('blessing', blessing?.transactionHash ?? '');
    }
    // 1.2 executes in order.
    if (version === '1.2')
      for (const earlier of [...pending, ...messages.slice(0, 1)]) await lane.execute(earlier);
    transactions.set('failed attempt', (await lane.execute(message, { fail: true })).transactionHash);
    transactions.set('manual execution', (await lane.executeByHand(message)).transactionHash);
    await index();
    expect((await recordOf(message)).status).toBe('SUCCESS');
    for (const [what, hash] of transactions) {
      expect(await foundBy('q', hash), what).toContain(message.messageId);
      if (what !== 'send')
        expect(await foundBy('destTransactionHash', hash), what).toContain(message.messageId);
    }
    // A commit is of all messages under its root, an attempt of one.
    const ids = messages.map(({ messageId }) => messageId);
    const commit = transactions.get('commit');
    if (commit) expect(await foundBy('q', commit)).toEqual(expect.arrayContaining(ids));
    expect(await foundBy('q', transactions.get('failed attempt') ?? '')).toEqual([message.messageId]);
  });
});

describe('2.0', () => {
  test.each([
    ['finalized', 'finalized', 0, '0x00000000'],
    ['safe', 'safe', 0, '0x00010000'],
    [5, 5, 5, '0x00000005'],
  ] as const)('finality %s is served as it was requested', async (finality, seen, depth, config) => {
    const message = await service.lab.lane('2.0', 'a').sendOne({ finality, verifiers: 1 });
    await index();
    const record = await recordOf(message);
    expect(record.finality).toBe(depth);
    expect(record.extraArgs).toMatchObject({ gasLimit: '200000', requestedFinalityConfig: config });
    const { message: decoded } = await client().getMessageById(message.messageId);
    expect(decoded.finality).toBe(seen);
    // The arguments are those that the client reads from the chain.
    expect(message.decoded.finality).toBe(seen);
  });

  test('a message in verification has what the destination is asked with', async () => {
    const lane = service.lab.lane('2.0', 'a');
    const message = await lane.sendOne();
    await index();
    const record = await recordOf(message);
    expect(record.encodedMessage).toBe(message.args.encodedMessage);
    expect((await service.server.ask(`/v1/verifierresults/${message.messageId}`)).status).toBe(404);
    const dest = await EVMChain.fromUrl(service.lab.b.url, { apiClient: client(), logger: silent });
    try {
      const request = await client().getMessageById(message.messageId);
      // The client asks the off-ramp for its verifiers by the encoded message, and us for their results: none yet.
      const asked = await dest.getVerifications({ offRamp: record.offramp ?? '', request });
      expect(asked).toMatchObject({
        verificationPolicy: { requiredCCVs: [expect.any(String)] },
        verifications: [],
      });
    } finally {
      dest.destroy();
    }
  });

  test.each([0, 1, 2])(
    'verifications never contradict success, with %i verifiers named',
    async (verifiers) => {
      const lane = service.lab.lane('2.0', 'a');
      const message = await lane.sendOne({ verifiers });
      await lane.execute(message);
      await index();
      const record = await recordOf(message);
      expect(record.status).toBe('SUCCESS');
      const { items } = record.verifiers ?? { items: [] };
      expect(items.length).toBeGreaterThan(0);
      for (const { isRequired, status } of items) if (isRequired) expect(status).toBe('COMPLETED');
      const results = await service.server.ask(`/v1/verifierresults/${message.messageId}`);
      expect(results.json()).toMatchObject({
        success: true,
        messageID: message.messageId,
        results: items
          .filter(({ isRequired }) => isRequired)
          .map(({ sourceAddress, destAddress, verification }) => ({
            verifierResult: {
              message_id: message.messageId,
              ccv_data: verification?.data,
              timestamp: verification?.timestamp,
              verifier_source_address: sourceAddress,
              verifier_dest_address: destAddress,
            },
          })),
      });
    },
  );
});

test('every method of the API client answers for every message of a run, or says why not in its own words', async () => {
  await drive(service.lab, { seed: 'every method', messagesPerSecond: Number.POSITIVE_INFINITY, rounds: 3 });
  await index();
  const api = client();
  const all: string[] = [];
  for await (const { messageId } of api.searchAllMessages({}, { limit: 50 })) all.push(messageId);
  expect(all.length).toBeGreaterThan(20);
  const errors = new Map<string, number>();
  const ask = async (promise: Promise<unknown>) => {
    const error = await promise.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (error === undefined) return;
    if (!CCIPError.isCCIPError(error)) throw error;
    errors.set(error.code, (errors.get(error.code) ?? 0) + 1);
  };
  for (const messageId of all) {
    const request = await api.getMessageById(messageId);
    expect(request.message.messageId).toBe(messageId);
    expect(await api.getMessageIdsInTx(request.tx.hash)).toContain(messageId);
    await ask(api.getExecutionInput(messageId));
    await ask(api.getLaneLatency(request.lane.sourceChainSelector, request.lane.destChainSelector));
    if ('getVerifications' in api)
      await ask((api.getVerifications as (id: string) => Promise<unknown>)(messageId));
  }
  // Not committed or not verified yet; too few deliveries for an estimate. Nothing else.
  for (const code of errors.keys())
    expect(['HTTP_ERROR', 'MESSAGE_NOT_VERIFIED_YET', 'LANE_LATENCY_INSUFFICIENT_DATA']).toContain(code);
});
