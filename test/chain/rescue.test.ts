// @module-tag slow: starts chain nodes with the contracts of every version
/** The transaction that rescues a message: it executes the message on real off-ramps, with gas that suffices. */
import { type Hex, numberToHex, pad, toFunctionSelector } from 'viem';
import { beforeAll, describe, expect, test } from 'vitest';
import type { ManualExecution } from '../../src/api/execution/execution-schema.ts';
import { expectError, type RunningServer } from '../api/running-server.ts';
import { rpcError } from '../json-rpc-server.ts';
import { PERMISSIONLESS_AFTER_SECONDS, type SentMessage, versions } from '../lab/lab.ts';
import { CCIPAPIClient } from '../lab/sdk.ts';
import { silent } from '../lab/sdk-chain.ts';
import { createLabExecution } from './lab-execution.ts';
import { eventually } from './proxied-lab.ts';

const service = createLabExecution();
const { ask, diagnoseAnew, diagnosisOf, holdCalls, index, interfere, send, serve, statusOf, takeDown } =
  service;
const { transactionOf } = service;

describe.each(versions)('the transaction of version %s', (version) => {
  test('executes a failed message with a token, byte for byte as the official client does', async () => {
    const lane = service.lab.lane(version, 'a');
    await lane.replaceRamps();
    // Five leaves: the tree has layers with an odd number of nodes.
    const messages = await lane.send({
      count: 5,
      data: (index) => `0x0${index}`,
      tokens: [{ amount: 10n ** 15n }],
    });
    await lane.prepare(messages);
    const failing = messages.at(-1) as SentMessage;
    for (const earlier of messages.slice(0, -1)) await lane.execute(earlier);
    await lane.execute(failing, { fail: true });
    await index();
    await lane.refuse([failing], false);

    const served = await transactionOf(failing);
    expect(served).toMatchObject({
      messageId: failing.messageId,
      version,
      network: service.lab.b.name,
      inputs: 'chain',
      transaction: { chainId: service.lab.b.chainId, value: '0x0' },
      gasLimit: { message: '200000', override: null },
    });
    expect(served.transaction.to.toLowerCase()).toBe(failing.ramps.offRamp.address.toLowerCase());
    expect(served.call.signature).toMatch(version === '2.0' ? /^execute\(bytes,/ : /^manuallyExecute\(\(/);

    const client = new CCIPAPIClient(service.server.url, { logger: silent });
    const input = await client.getExecutionInput(failing.messageId);
    const chain = await service.lab.b.sdk();
    const { transactions } = await chain.generateUnsignedExecute({
      offRamp: input.offRamp,
      input,
      payer: service.lab.b.foundation.bystander,
    });
    expect(transactions.map(({ data }) => data)).toEqual([served.transaction.data]);

    expect((await send(served)).status).toBe('0x1');
    expect(await statusOf(failing)).toBe('SUCCESS');
    expectError(await ask('manual-execution', failing), 409, 'MESSAGE_ALREADY_EXECUTED');
  });

  test('raises the gas limit of a message that ran out of gas', async () => {
    const lane = service.lab.lane(version, 'b');
    await lane.replaceRamps();
    const message = await lane.sendOne({ data: '0x1234', gasLimit: 2_000n });
    await lane.prepare([message]);
    expect((await lane.execute(message)).state).toBe('failure');
    await index();

    // 1.2 records another failure, the others revert.
    const again = send(await transactionOf(message), service.lab.a);
    if (version === '1.2') await again;
    else await expect(again).rejects.toThrow();
    const { details } = expectError(
      await ask('manual-execution?gasLimit=1999', message),
      400,
      'INVALID_PARAMETERS',
    );
    expect(details[0]?.problem).toContain('2000');
    const served = await transactionOf(message, '?gasLimit=100000');
    expect(served.gasLimit).toEqual({ message: '2000', override: '100000' });
    await send(served, service.lab.a);
    expect(await statusOf(message)).toBe('SUCCESS');
  });
});

test('there is no transaction before the commit, nor before the delay is over', async () => {
  const lane = service.lab.lane('1.6', 'a');
  await lane.replaceRamps();
  const message = await lane.sendOne({ data: '0x12' });
  await index();
  expectError(await ask('manual-execution', message), 409, 'EXECUTION_INPUTS_NOT_READY');
  await lane.commit([message]);
  await index();
  expectError(await ask('manual-execution', message), 409, 'MANUAL_EXECUTION_NOT_OPEN');

  await service.lab.travel(PERMISSIONLESS_AFTER_SECONDS + 10);
  await index();
  await send(await transactionOf(message));
  expect(await statusOf(message)).toBe('SUCCESS');

  expectError(await ask('manual-execution', { messageId: `0x${'ab'.repeat(32)}` }), 404, 'MESSAGE_NOT_FOUND');
});

describe('messages with an order', () => {
  const ordered = ['1.2', '1.5', '1.6'] as const;
  const pairs = new Map<string, readonly [first: SentMessage, second: SentMessage]>();
  beforeAll(async () => {
    for (const version of ordered) {
      const lane = service.lab.lane(version, 'a');
      await lane.replaceRamps();
      const pair = [
        await lane.sendOne({ data: '0x01', outOfOrder: false }),
        await lane.sendOne({ data: '0x02', outOfOrder: false }),
      ] as const;
      await lane.prepare(pair);
      pairs.set(version, pair);
    }
    await index();
    for (const [, second] of pairs.values()) {
      // It is not open yet, and that is not all.
      expect(await diagnoseAnew(second)).toMatchObject({
        outcome: 'not-yet',
        reason: { code: 'SkippedIncorrectNonce' },
      });
    }
    await service.lab.travel(PERMISSIONLESS_AFTER_SECONDS + 10);
    await index();
  }, 300_000);
  const pairOf = (version: string) => pairs.get(version) as [SentMessage, SentMessage];

  test.each(ordered)('a nonce of %s that is used or cannot be read is no success', async (version) => {
    const [first] = pairOf(version);
    const asksNonce = toFunctionSelector(
      version === '1.6' ? 'getInboundNonce(uint64,bytes)' : 'getSenderNonce(address)',
    );
    let answer: Hex = pad(numberToHex(first.nonce));
    interfere(({ method, params }, truth) =>
      method === 'eth_call' && (params[0] as { data: string }).data.startsWith(asksNonce) ? answer : truth,
    );
    expect(await diagnoseAnew(first)).toMatchObject({
      outcome: 'fails',
      text: expect.stringContaining('is used already'),
      reason: { code: 'SkippedIncorrectNonce' },
    });
    answer = '0x';
    expectError(await ask('diagnosis', first, await serve()), 503, 'DIAGNOSIS_FAILED');
  });

  test.each(ordered)(
    'one of %s waits for the one before it, and sending it earlier changes nothing',
    async (version) => {
      const lane = service.lab.lane(version, 'a');
      const [first, second] = pairOf(version);
      expect(second.nonce).toBe(first.nonce + 1n);
      expect(await diagnoseAnew(second)).toMatchObject({
        outcome: 'fails',
        text: expect.stringContaining(`nonce ${first.nonce} `),
        gas: null,
        reason: { code: 'SkippedIncorrectNonce', saidBy: 'ccip', fixableBy: 'anyone' },
      });
      const served = await transactionOf(second);
      expect(served).toMatchObject({
        trial: 'fails',
        transaction: { gas: null },
        gasNote: expect.stringContaining('leave the message as it is'),
      });
      // The trap: the transaction succeeds, its fee is paid, and the message is as it was.
      const { transaction } = served;
      const skipped = await send({ ...served, transaction: { ...transaction, gas: '0x1e8480' } });
      expect(skipped.status).toBe('0x1');
      expect(second.ramps.offRamp.events(skipped, 'ExecutionStateChanged')).toEqual([]);

      // Without an endpoint nobody asks for the nonce.
      const blind = await serve({});
      const unchecked = expect.stringContaining(
        'An earlier message of the same sender may have to be executed',
      );
      expect(await diagnosisOf(second, blind)).toMatchObject({ outcome: 'untried', text: unchecked });
      const unhelped = await transactionOf(second, '', blind);
      expect(unhelped).toMatchObject({ trial: null, gasNote: unchecked });

      expect((await diagnoseAnew(first)).outcome).toBe('succeeds');
      await send(await transactionOf(first));
      expect(await statusOf(first)).toBe('SUCCESS');
      expect((await diagnoseAnew(second)).outcome).toBe('succeeds');
      // A failed message has had its turn: it is executed again without a check.
      await lane.execute(second, { fail: true });
      await lane.refuse([second], false);
      await index();
      expect((await diagnoseAnew(second)).outcome).toBe('succeeds');
      await send(await transactionOf(second));
      expect(await statusOf(second)).toBe('SUCCESS');
    },
  );
});

describe('without an estimate that can be used, the transaction has gas that suffices', () => {
  const stuck = new Map<string, SentMessage>();
  beforeAll(async () => {
    for (const version of versions) {
      const lane = service.lab.lane(version, 'a');
      await lane.replaceRamps();
      // Messages of 1.2 do not tell the gas of their tokens.
      const tokens = version === '1.2' ? [] : [{ amount: 5n }];
      const message = await lane.sendOne({ data: '0x1234', gasLimit: 400_000n, tokens });
      await lane.prepare([message]);
      // Results of verifiers are known from an attempt. Before the others were tried, the off-ramp catches their failure.
      if (version === '2.0') {
        await lane.execute(message, { fail: true });
        await lane.refuse([message], false);
      }
      await service.lab.b.foundation.receiver.send('consume', [message.messageId, 3_000n]);
      stuck.set(version, message);
    }
    await service.lab.travel(PERMISSIONLESS_AFTER_SECONDS + 10);
    await index();
  }, 300_000);

  /** Whether the message is executed, on a chain that forgets it. */
  async function isExecuted(version: string, served: ManualExecution): Promise<boolean> {
    const snapshot = await service.lab.b.rpc<Hex>('evm_snapshot');
    try {
      const { ramps } = stuck.get(version) as SentMessage;
      const [event] = ramps.offRamp.events(await send(served), 'ExecutionStateChanged');
      return event?.args.state === 2;
    } finally {
      await service.lab.b.rpc('evm_revert', [snapshot]);
    }
  }
  const transactionFrom = (from: RunningServer, version: string, parameters = '') =>
    transactionOf(stuck.get(version) as SentMessage, parameters, from);

  const estimate = (answer: () => unknown) =>
    interfere(({ method }, truth) => (method === 'eth_estimateGas' ? answer() : truth));

  /** What is arranged before a server that asks the nodes is started, and what the transaction then says. */
  const causes: readonly (readonly [cause: string, arrange: () => void, note: RegExp | null])[] = [
    ['the endpoint is down', takeDown, /did not answer.* computed/],
    [
      'the endpoint refuses to estimate',
      () =>
        estimate(() => {
          throw rpcError(-32_000, 'gas required exceeds allowance');
        }),
      /computed/,
    ],
    [
      'the endpoint estimates beyond all measure',
      () => estimate(() => `0x${Number.MAX_SAFE_INTEGER.toString(16)}`),
      /not credible.* computed/,
    ],
    ['the endpoint estimates less than the receiver gets', () => estimate(() => '0x5208'), null],
  ];

  async function expectGasThatSuffices(from: RunningServer, note: RegExp | null): Promise<void> {
    for (const version of versions) {
      const served = await transactionFrom(from, version);
      expect(served.transaction.gas, version).toMatch(/^0x/);
      expect(Number(served.transaction.gas), version).toBeLessThan(3_000_000);
      expect(served.gasNote, version).toEqual(note && expect.stringMatching(note));
      expect(await isExecuted(version, served), version).toBe(true);
    }
  }

  test.each(causes)('%s', async (_cause, arrange, note) => {
    arrange();
    await expectGasThatSuffices(await serve(), note);
  });

  // That is what `diagnosis: false` comes to, as well.
  test('no endpoint is configured', async () => {
    await expectGasThatSuffices(await serve({}), /no endpoint .* computed/);
  });

  test('too many are tried at once', async () => {
    const busy = await serve();
    const calls = holdCalls();
    const others = Array.from({ length: 8 }, (_, place) =>
      transactionFrom(busy, '1.5', `?gasLimit=${500_000 + place}`),
    );
    await eventually(() => expect(calls.held()).toBeGreaterThanOrEqual(8));
    await expectGasThatSuffices(busy, /Too many.* computed/);
    calls.release();
    await Promise.all(others);
  });

  test('with the estimate of a wallet the transaction succeeds, and the message fails', async () => {
    const served = await transactionFrom(service.server, '1.6');
    const { to, data } = served.transaction;
    const consume = (leftover: bigint) =>
      service.lab.b.foundation.receiver.send('consume', [stuck.get('1.6')?.messageId, leftover]);
    await consume(0n);
    const gas = await service.lab.b.rpc<Hex>('eth_estimateGas', [
      { from: service.lab.b.foundation.bystander, to, data },
    ]);
    expect(await isExecuted('1.6', { ...served, transaction: { ...served.transaction, gas } })).toBe(false);
    expect(await isExecuted('1.6', served)).toBe(true);
    await consume(3_000n);
  });

  test('a message of 1.2 with a token has none: only an endpoint knows the gas of its pool', async () => {
    const lane = service.lab.lane('1.2', 'b');
    await lane.replaceRamps();
    const message = await lane.sendOne({ tokens: [{ amount: 5n }] });
    await lane.prepare([message]);
    await lane.execute(message, { fail: true });
    await lane.refuse([message], false);
    await index();
    expect(await transactionOf(message, '', await serve({}))).toMatchObject({
      transaction: { gas: null },
      gasNote: expect.stringContaining('do not tell how much gas their token pools get'),
    });
    await send(await transactionOf(message), service.lab.a);
    expect(await statusOf(message)).toBe('SUCCESS');
  });

  test('a block of a time that cannot be is the fault of its endpoint', async () => {
    // It is honest about the block that it is taken into service with.
    let asked = 0;
    interfere(({ method }, truth) =>
      method === 'eth_getBlockByNumber' && ++asked > 1
        ? { ...(truth as object), timestamp: `0x${Number.MAX_SAFE_INTEGER.toString(16)}` }
        : truth,
    );
    const message = stuck.get('1.6') as SentMessage;
    expectError(await ask('diagnosis', message, await serve()), 503, 'DIAGNOSIS_FAILED');
    // With another endpoint, that one is asked.
    const helped = await serve({ destinations: service.destinations(true) });
    asked = 0;
    expect(await diagnosisOf(message, helped)).toMatchObject({ outcome: 'succeeds' });
  });
});
