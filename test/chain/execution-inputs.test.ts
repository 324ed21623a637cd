/** `/v2/messages/{id}/execution-inputs`: what it serves, when it cannot, and that the official client can use it. */
import { concat, numberToHex, pad, size, toHex } from 'viem';
import { beforeEach, describe, expect, test } from 'vitest';
import type { ExecutionMaterial, Fact, RangeFact, Sent } from '../../src/domain/facts.ts';
import type { Message } from '../../src/domain/message.ts';
import { expectError, serverForAll } from '../api/running-server.ts';
import {
  evmAddress,
  fuji,
  hashOf,
  makeExecuted,
  makeMessage,
  makePolicy,
  makeRange,
  makeSent,
  makeSnapshot,
  makeToldBySource,
  makeVerifier,
  makeVerifierCompleted,
  sepolia,
  verifierAddress,
} from '../fixtures.ts';
import { CCIPAPIClient, CCIPError, type SdkExecutionInput } from '../lab/sdk.ts';
import { calculateManualExecProof, type SdkMessage, silent } from '../lab/sdk-chain.ts';

const server = serverForAll();

/** Each test has a lane of its own: on-ramps are what tells them apart. */
let laneNumber = 0;
let onramp: string;
beforeEach(() => {
  onramp = evmAddress('onramp', ++laneNumber);
});

const offramp = makeMessage({ destNetworkInfo: sepolia, receiver: evmAddress('offramp') }).receiver;

function messageOf(number: number, overrides: Partial<Message> = {}): Message {
  return makeMessage({
    number: laneNumber * 1_000 + number,
    sequenceNumber: String(number),
    onramp,
    ...overrides,
  });
}

/** As the event of version 1.6 has it, integers as strings. */
function material16(message: Message) {
  return {
    messageId: message.messageId,
    sourceChainSelector: message.sourceNetworkInfo.chainSelector,
    destChainSelector: message.destNetworkInfo.chainSelector,
    sequenceNumber: message.sequenceNumber,
    nonce: message.nonce,
    sender: message.sender,
    receiver: message.receiver,
    data: message.data,
    // The tag of EVMExtraArgsV2, a gas limit, out of order.
    extraArgs: concat(['0x181dcf10', pad(toHex(200_000)), pad('0x01')]),
    feeToken: message.fees.fixedFeesDetails.tokenAddress,
    feeTokenAmount: '1000000',
    feeValueJuels: '5',
    tokenAmounts: [],
  };
}

function material15(message: Message) {
  const { destChainSelector, extraArgs, feeValueJuels, ...same } = material16(message);
  return { ...same, gasLimit: '200000', strict: false, sourceTokenData: [] };
}

const sentWith = (message: Message, execution: ExecutionMaterial): Sent => ({
  ...makeSent(message),
  execution,
});

const sent16 = (message: Message) => sentWith(message, { message: material16(message) });

const versions = { '1.5.0': material15, '1.6.0': material16 } as const;

/** A root over these messages as a chain would have it, committed by an off-ramp. */
function committed(messages: readonly Message[], blockNumber = 4000): RangeFact {
  const [first] = messages as [Message];
  const version = (first.version ?? '1.6.0') as keyof typeof versions;
  const { merkleRoot } = calculateManualExecProof(
    // Its coder takes decimal strings for integers.
    messages.map((message) => versions[version](message) as unknown as SdkMessage),
    {
      sourceChainSelector: BigInt(first.sourceNetworkInfo.chainSelector),
      destChainSelector: BigInt(first.destNetworkInfo.chainSelector),
      onRamp: first.onramp,
      version,
    },
    first.messageId,
    undefined,
    { logger: silent },
  );
  const numbers = messages.map(({ sequenceNumber }) => Number(sequenceNumber));
  return {
    ...makeRange('Committed', first, Math.min(...numbers), Math.max(...numbers), blockNumber),
    merkleRoot,
    offramp,
  };
}

const path = (message: Message) => `/v2/messages/${message.messageId}/execution-inputs`;
const ask = (message: Message) => server.ask(path(message));
const fromSdk = (message: Message): Promise<SdkExecutionInput> =>
  new CCIPAPIClient(server.url, { logger: silent }).getExecutionInput(message.messageId);

describe.each(['1.5.0', '1.6.0'] as const)('version %s', (version) => {
  const batch = (numbers: readonly number[]) => numbers.map((number) => messageOf(number, { version }));
  const sent = (message: Message) => sentWith(message, { message: versions[version](message) });

  test('serves every message of the root in order, for each of them', async () => {
    const messages = batch([3, 4, 5, 6, 7]);
    const commit = committed(messages);
    // Told in another order, with neighbours on either side that are no part of it.
    const neighbours = batch([2, 8]);
    await server.store.apply([...messages].reverse().map(sent));
    await server.store.apply([...neighbours.map(sent), commit]);
    for (const message of messages) {
      const answer = await ask(message);
      expect(answer.status).toBe(200);
      expect(answer.json<unknown>()).toEqual({
        offramp,
        onramp: message.onramp,
        sourceChainSelector: sepolia.chainSelector,
        destChainSelector: fuji.chainSelector,
        version,
        merkleRoot: commit.merkleRoot,
        messageBatch: messages.map((each) => versions[version](each)),
      });
      const input = await fromSdk(message);
      expect(input).toMatchObject({
        offRamp: offramp,
        onRamp: message.onramp,
        sourceChainSelector: BigInt(sepolia.chainSelector),
        destChainSelector: BigInt(fuji.chainSelector),
        version,
        merkleRoot: commit.merkleRoot,
        message: { messageId: message.messageId, sequenceNumber: BigInt(message.sequenceNumber) },
        offchainTokenData: [],
      });
      expect(input.proofs?.length).toBeGreaterThan(0);
    }
    expectError(await ask(neighbours[0] as Message), 409, 'EXECUTION_INPUTS_NOT_READY');
  });

  test('serves the newest commit where there are several', async () => {
    const [one, two] = batch([1, 2]) as [Message, Message];
    const early = committed([one], 4000);
    const late = committed([one, two], 4001);
    await server.store.apply([sent(one), sent(two), late, early]);
    expect((await fromSdk(one)).merkleRoot).toBe(late.merkleRoot);
    await server.store.apply([], [{ network: late.seen.network, blockHash: late.seen.blockHash }]);
    expect((await fromSdk(one)).merkleRoot).toBe(early.merkleRoot);
  });
});

describe('version 2.0', () => {
  const [alice, bob, carol] = ['Alice', 'Bob', 'Carol'].map((name) => verifierAddress(fuji, name));
  const make = (number: number) =>
    makeToldBySource(
      messageOf(number, {
        version: '2.0.0',
        verifiers: {
          items: ['Alice', 'Bob', 'Carol'].map((name) => makeVerifier(name)),
          optionalThreshold: 0,
        },
      }),
    );
  type Hex = `0x${string}`;
  const prefixed = (bytes: Hex, length: number) =>
    concat([numberToHex(size(bytes), { size: length }), bytes]);
  const encoded = (message: Message) => {
    const { sourceNetworkInfo, destNetworkInfo, sequenceNumber } = message;
    const numbers = [sourceNetworkInfo.chainSelector, destNetworkInfo.chainSelector, sequenceNumber];
    const [onRamp, sender] = [message.onramp, message.sender].map((address) => pad(address as Hex));
    return concat([
      '0x01',
      ...numbers.map((number) => numberToHex(BigInt(number), { size: 8 })),
      ...[300_000, 200_000, 0].map((number) => numberToHex(number, { size: 4 })),
      numberToHex(0, { size: 32 }),
      ...[onRamp, offramp, sender, message.receiver].map((address) => prefixed(address as Hex, 1)),
      ...(['0x', '0x', '0x1234'] as const).map((bytes) => prefixed(bytes, 2)),
    ]);
  };
  const sent = (message: Message) => sentWith(message, { encodedMessage: encoded(message), offramp });
  const asked = { required: ['Alice'], optional: ['Bob', 'Carol'], threshold: 1 };
  const served = async (message: Message) => (await ask(message)).json<Record<string, unknown>>();

  test('serves the encoded message with what its verifiers have said so far', async () => {
    const message = make(1);
    const steps: readonly (readonly [Fact, verifiers: readonly unknown[], complete: boolean])[] = [
      [sent(message), [], false],
      [makeVerifierCompleted(message, 'Alice'), [], false],
      [makePolicy(message, asked), [alice], false],
      [makeVerifierCompleted(message, 'Carol'), [alice, carol], true],
      [makeExecuted(message, false), [alice, carol], true],
      [makeVerifierCompleted(message, 'Bob'), [alice, bob, carol], true],
    ];
    const dataOf = (verifier: unknown) =>
      ['Alice', 'Bob', 'Carol']
        .map((name) => makeVerifierCompleted(message, name))
        .find((fact) => fact.verifier === verifier)?.data;
    for (const [fact, verifierAddresses, verificationComplete] of steps) {
      await server.store.apply([fact]);
      expect(await served(message)).toEqual({
        offramp,
        encodedMessage: encoded(message),
        verifierAddresses,
        ccvData: verifierAddresses.map(dataOf),
        verificationComplete,
      });
    }
    expect(await fromSdk(message)).toMatchObject({
      offRamp: offramp,
      onRamp: message.onramp,
      version: '2.0.0',
      sourceChainSelector: BigInt(sepolia.chainSelector),
      destChainSelector: BigInt(fuji.chainSelector),
      encodedMessage: encoded(message),
      verifications: [alice, bob, carol].map((destAddress) => ({
        destAddress,
        ccvData: dataOf(destAddress),
      })),
    });
  });

  test('names verifiers as the destination knows them', async () => {
    const message = make(1);
    await server.store.apply([
      sent(message),
      makePolicy(message, { required: ['Dave', 'Eve', 'Frank'] }),
      makeVerifierCompleted(message, 'Bob'),
    ]);
    expect(await served(message)).toMatchObject({
      verifierAddresses: [verifierAddress(fuji, 'Eve')],
      verificationComplete: false,
    });
  });
});

describe('when it cannot be served', () => {
  const rejection = async (message: Message) => {
    const error: unknown = await fromSdk(message).catch((reason: unknown) => reason);
    expect(CCIPError.isCCIPError(error) && error).toMatchObject({
      name: 'CCIPMessageIdNotFoundError',
      context: { apiErrorCode: 'EXECUTION_INPUTS_NOT_FOUND' },
    });
    return expectError(await ask(message), 404, 'EXECUTION_INPUTS_NOT_FOUND').message;
  };

  test('a message that nobody knows is not found, with how far networks are indexed', async () => {
    const { message } = expectError(await ask(messageOf(1)), 404, 'MESSAGE_NOT_FOUND');
    expect(message).toMatch(/^No message 0x[0-9a-f]{64} is known here\. No network is indexed here/);
  });

  test('one that only an import told of says so, whatever its status', async () => {
    const message = messageOf(1, { status: 'FAILED' });
    await server.store.apply([makeSnapshot(message), committed([message])]);
    expect(await rejection(message)).toMatch(/known from an import only.* Index its source network/);
    const svm = messageOf(2);
    await server.store.apply([makeSent(svm), committed([svm])]);
    expect(await rejection(svm)).toMatch(/known from an import only/);
  });

  test('one that is not committed says so', async () => {
    const message = messageOf(1);
    await server.store.apply([sent16(message)]);
    for (const later of [[], [makeRange('Blessed', message, 1, 1)]]) {
      await server.store.apply(later);
      const { message: words } = expectError(await ask(message), 409, 'EXECUTION_INPUTS_NOT_READY');
      expect(words).toMatch(/is not committed on its destination yet/);
    }
  });

  test('one whose commit names no off-ramp says so', async () => {
    const message = messageOf(1);
    const { offramp: _, ...commit } = committed([message]);
    await server.store.apply([sent16(message), commit]);
    expect(await rejection(message)).toMatch(/does not report the off-ramp/);
  });

  test('a batch of which some messages are missing names their numbers', { tags: 'slow' }, async () => {
    const messages = [11, 12, 13, 14, 15, 16].map((number) => messageOf(number));
    const messageAt = (place: number) => messages[place] as Message;
    const second = messageAt(1);
    const others = [makeSnapshot(messageAt(3)), makeSent(messageAt(5))];
    await server.store.apply([committed(messages), sent16(second), ...others]);
    expect(await rejection(second)).toMatch(
      /The root that covers it has the sequence numbers 11 to 16; not read from the chain here: 11, 13 to 16\./,
    );
    await server.store.apply(messages.map(sent16));
    expect((await ask(second)).status).toBe(200);
    await server.store.apply([], [makeSent(messageAt(0)).seen]);
    expect(await rejection(second)).toMatch(/not read from the chain here: 11\./);
  });

  test('a run that no root can have is not put together', async () => {
    const message = messageOf(300);
    const commit = { ...committed([message]), fromSequenceNumber: '100', toSequenceNumber: '356' };
    await server.store.apply([sent16(message), commit]);
    expect(await rejection(message)).toMatch(/sequence numbers 100 to 356, more than/);
  });

  test('a batch that is too large says how large it is', { tags: 'slow' }, async () => {
    const messages = Array.from({ length: 18 }, (_, n) => messageOf(n + 1));
    const [first] = messages as [Message];
    const commit = { ...makeRange('Committed', first, 1, messages.length), offramp };
    const data = `0x${'ab'.repeat(1_000_000)}`;
    const long = (message: Message) => sentWith(message, { message: { ...material16(message), data } });
    await server.store.apply([...messages.slice(0, 16).map(long), ...messages.slice(16).map(sent16), commit]);
    expect((await ask(first)).json<{ messageBatch: unknown[] }>().messageBatch).toHaveLength(18);
    await server.store.apply(
      [],
      messages.slice(16).map((message) => makeSent(message).seen),
    );
    await server.store.apply(messages.slice(16).map(long));
    expect(await rejection(first)).toMatch(
      /The root that covers it has the sequence numbers 1 to 18, whose messages have 35 MB together; at most 32 MB/,
    );
  });

  test.each(['0x12', 'nonsense', `${hashOf('m')}0`])('the id %s is rejected', async (id) => {
    expectError(await server.ask(`/v2/messages/${id}/execution-inputs`), 400, 'INVALID_MESSAGE_ID');
  });

  test('a parameter is rejected', async () => {
    expectError(await server.ask(`${path(messageOf(1))}?limit=1`), 400, 'INVALID_PARAMETERS');
  });
});

test('a number that two blocks gave to two messages is the one’s that was asked for', async () => {
  const one = messageOf(1);
  // Of the same time: a commit is not taken for that of a message which was sent days after it.
  const { sendTimestamp } = one;
  const place = { sequenceNumber: '1', onramp, sendBlockNumber: 5_000, sendTimestamp };
  const other = makeMessage({ number: 999_999, ...place });
  await server.store.apply([sent16(one), sent16(other), committed([one])]);
  const batchOf = async (message: Message) =>
    (await ask(message))
      .json<{ messageBatch: readonly { messageId: string }[] }>()
      .messageBatch.map(({ messageId }) => messageId);
  expect(await batchOf(one)).toEqual([one.messageId]);
  expect(await batchOf(other)).toEqual([other.messageId]);
});

test('a snapshot with text that a database cannot take as JSON does not stand in the way', async () => {
  const message = messageOf(1, {
    status: 'FAILED',
    sourceNetworkInfo: { ...sepolia, displayName: 'nul \u0000 lone \ud800' },
  });
  await server.store.apply([
    makeSnapshot(message),
    sentWith(messageOf(1), { message: material16(message) }),
    committed([message]),
  ]);
  expect((await fromSdk(message)).message?.messageId).toBe(message.messageId);
});

test('the largest batch there is, of the longest messages, is served whole and read by the client', {
  tags: 'slow',
}, async () => {
  const data = `0x${'5a'.repeat(30_000)}`;
  const messages = Array.from({ length: 256 }, (_, index) => messageOf(index + 1, { data }));
  const commit = committed(messages);
  for (let from = 0; from < messages.length; from += 64) {
    await server.store.apply(messages.slice(from, from + 64).map((message) => sent16(message)));
  }
  await server.store.apply([commit]);
  const [asked] = messages.slice(-1) as [Message];
  const input = await fromSdk(asked);
  expect(input).toMatchObject({ merkleRoot: commit.merkleRoot, message: { messageId: asked.messageId } });
  expect(input.proofs).toHaveLength(8);
});

test('the path works without its version too, and has the manners of the others', async () => {
  const message = messageOf(1);
  await server.store.apply([sent16(message), committed([message])]);
  const { text, headers } = await server.ask(path(message));
  expect((await server.ask(path(message).replace('/v2', ''))).text).toBe(text);
  expect(headers.etag).toMatch(/^"/);
  const again = await server.ask(path(message), { headers: { 'If-None-Match': String(headers.etag) } });
  expect(again.status).toBe(304);
  expect((await server.ask(path(message), { method: 'POST' })).status).toBe(405);
});
