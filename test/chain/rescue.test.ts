// @module-tag slow: starts chain nodes with the contracts of every version
/** Rescuing messages: the transaction that we build executes them on real off-ramps, and a diagnosis foretells the outcome. */
import { encodeErrorResult, type Hex, numberToHex, pad, parseAbi, toFunctionSelector } from 'viem';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Diagnosis, ManualExecution } from '../../src/api/execution/execution-schema.ts';
import { createDestinations } from '../../src/cli/config/destinations.ts';
import type { Message } from '../../src/domain/message.ts';
import { expectError, type RunningServer, serveStore, startServer } from '../api/running-server.ts';
import { lanescan } from '../cli/program.ts';
import { freshFolder } from '../fresh-folder.ts';
import { rpcError } from '../json-rpc-server.ts';
import { writeConfiguration } from '../lab/config.ts';
import {
  type Lab,
  type Lane,
  PERMISSIONLESS_AFTER_SECONDS,
  type SentMessage,
  startLab,
  versions,
} from '../lab/lab.ts';
import { CCIPAPIClient } from '../lab/sdk.ts';
import { silent } from '../lab/sdk-chain.ts';
import { indexOnce, labSource } from './indexing.ts';
import { honest, type NodeProxy, startNodeProxy } from './node-proxy.ts';

let lab: Lab;
let server: RunningServer;

/** In front of the nodes, for what is asked by diagnoses. */
let proxies: readonly [NodeProxy, NodeProxy];
const stopping = new AbortController();

beforeAll(async () => {
  lab = await startLab();
  proxies = await Promise.all([startNodeProxy(lab.a.url), startNodeProxy(lab.b.url)]);
  server = await startServer([], { destinations: destinations() });
}, 300_000);
afterAll(async () => {
  stopping.abort();
  await server?.close();
  for (const proxy of proxies ?? []) await proxy.close();
  await lab?.stop();
});

const destinations = () =>
  createDestinations({
    sources: lab.networks.map((network, place) => labSource(network, { rpc: [proxies[place]?.url as URL] })),
    signal: stopping.signal,
    writeLog: () => undefined,
  });

/** Twice: a destination may have found nothing to ask about a message before its source told of it. */
async function index(): Promise<void> {
  await indexOnce(server.store, lab);
  await indexOnce(server.store, lab);
}

const ask = (path: string, { messageId }: Pick<SentMessage, 'messageId'>) =>
  server.ask(`/v2/messages/${messageId}/${path}`);

async function transactionOf(message: SentMessage, parameters = ''): Promise<ManualExecution> {
  const answer = await ask(`manual-execution${parameters}`, message);
  expect(answer.text).toContain('"transaction"');
  return answer.json<ManualExecution>();
}

/** Sends exactly what was served, as somebody who has nothing to do with it. */
function send({ transaction: { to, data, value, gas } }: ManualExecution, on = lab.b) {
  return on.transact({
    from: on.foundation.bystander,
    to: to as Hex,
    data: data as Hex,
    value: BigInt(value),
    ...(gas !== null && { gas: BigInt(gas) }),
  });
}

/** Another server with the same messages, which has cached nothing. */
async function serve(options: Parameters<typeof serveStore>[1] = {}): Promise<RunningServer> {
  const served = await serveStore({ ...server.store, close: async () => undefined }, options);
  onTestFinished(() => served.close());
  return served;
}

/** Has the node of network b answer otherwise, until the test ends. */
function interfere(interference: NodeProxy['interfere']): void {
  const [, proxy] = proxies;
  proxy.interfere = interference;
  onTestFinished(() => {
    proxy.interfere = honest;
  });
}

async function statusOf({ messageId }: SentMessage): Promise<string> {
  await index();
  return (await server.ask(`/v2/messages/${messageId}`)).json<Message>().status;
}

async function commit(lane: Lane, messages: readonly SentMessage[]): Promise<void> {
  if (lane.version !== '2.0') await lane.commit(messages);
  if (lane.version === '1.2' || lane.version === '1.5') await lane.bless(messages);
}

describe.each(versions)('the transaction of version %s', (version) => {
  test('executes a failed message with a token, byte for byte as the official client does', async () => {
    const lane = lab.lane(version, 'a');
    await lane.replaceRamps();
    // Five leaves: the tree has layers with an odd number of nodes.
    const messages = await lane.send({
      count: 5,
      data: (index) => `0x0${index}`,
      tokens: [{ amount: 10n ** 15n }],
    });
    await commit(lane, messages);
    const failing = messages.at(-1) as SentMessage;
    for (const earlier of messages.slice(0, -1)) await lane.execute(earlier);
    await lane.execute(failing, { fail: true });
    await index();
    await lane.refuse([failing], false);

    const served = await transactionOf(failing);
    expect(served).toMatchObject({
      messageId: failing.messageId,
      version,
      network: lab.b.name,
      inputs: 'chain',
      transaction: { chainId: lab.b.chainId, value: '0x0' },
      gasLimit: { message: '200000', override: null },
    });
    expect(served.transaction.to.toLowerCase()).toBe(failing.ramps.offRamp.address.toLowerCase());
    expect(served.call.signature).toMatch(version === '2.0' ? /^execute\(bytes,/ : /^manuallyExecute\(\(/);

    const client = new CCIPAPIClient(server.url, { logger: silent });
    const input = await client.getExecutionInput(failing.messageId);
    const chain = await lab.b.sdk();
    const { transactions } = await chain.generateUnsignedExecute({
      offRamp: input.offRamp,
      input,
      payer: lab.b.foundation.bystander,
    });
    expect(transactions.map(({ data }) => data)).toEqual([served.transaction.data]);

    const { status } = await send(served);
    expect(status).toBe('0x1');
    expect(await statusOf(failing)).toBe('SUCCESS');
    expectError(await ask('manual-execution', failing), 409, 'MESSAGE_ALREADY_EXECUTED');
  });

  test('raises the gas limit of a message that ran out of gas', async () => {
    const lane = lab.lane(version, 'b');
    await lane.replaceRamps();
    const message = await lane.sendOne({ data: '0x1234', gasLimit: 2_000n });
    await commit(lane, [message]);
    expect((await lane.execute(message)).state).toBe('failure');
    await index();

    // 1.2 records another failure, the others revert.
    const again = send(await transactionOf(message), lab.a);
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
    await send(served, lab.a);
    expect(await statusOf(message)).toBe('SUCCESS');
  });
});

test('there is no transaction before the commit, nor before the delay is over', async () => {
  const lane = lab.lane('1.6', 'a');
  await lane.replaceRamps();
  const message = await lane.sendOne({ data: '0x12' });
  await index();
  expectError(await ask('manual-execution', message), 409, 'EXECUTION_INPUTS_NOT_READY');
  await lane.commit([message]);
  await index();
  expectError(await ask('manual-execution', message), 409, 'MANUAL_EXECUTION_NOT_OPEN');

  await lab.travel(PERMISSIONLESS_AFTER_SECONDS + 10);
  await index();
  await send(await transactionOf(message));
  expect(await statusOf(message)).toBe('SUCCESS');

  expectError(await ask('manual-execution', { messageId: `0x${'ab'.repeat(32)}` }), 404, 'MESSAGE_NOT_FOUND');
});

const errors = parseAbi(['error Error(string message)', 'error EnforcedPause()']);

async function diagnosisOf(message: SentMessage): Promise<Diagnosis> {
  const answer = await ask('diagnosis', message);
  expect({ status: answer.status, text: answer.text }).toMatchObject({ status: 200 });
  return answer.json<Diagnosis>();
}

/** The cache of diagnoses would remember what the receiver did before. */
async function diagnoseAnew(message: SentMessage): Promise<Diagnosis> {
  const fresh = await serveStore(
    { ...server.store, close: async () => undefined },
    { destinations: destinations() },
  );
  try {
    return (await fresh.ask(`/v2/messages/${message.messageId}/diagnosis`)).json<Diagnosis>();
  } finally {
    await fresh.close();
  }
}

describe.each(versions)('the diagnosis of version %s', (version) => {
  test('says before what then happens', async () => {
    const lane = lab.lane(version, 'a');
    await lane.replaceRamps();
    const [pausing, hungry, poor] = [
      await lane.sendOne({ data: '0x01', tokens: [{ amount: 7n }] }),
      await lane.sendOne({ data: '0x02' }),
      await lane.sendOne({ data: '0x03', gasLimit: 2_000n }),
    ];
    await commit(lane, [pausing, hungry, poor]);
    await lane.refuseWith(pausing, encodeErrorResult({ abi: errors, errorName: 'EnforcedPause' }));
    await lane.refuseWith(hungry, 'all-gas');
    for (const message of [pausing, hungry]) await lane.execute(message, { fail: true });
    await lane.execute(poor);
    await index();

    expect(await diagnosisOf(pausing)).toMatchObject({
      outcome: 'fails',
      text: 'The receiver says: the called contract is paused.',
      gasLimit: null,
      gas: null,
      reason: { code: 'EnforcedPause', wrappers: [{ name: 'ReceiverError' }] },
      network: lab.b.name,
    });
    // The message of a contract is whole here, while the event of 2.0 has cut it off.
    await lane.refuseWith(
      pausing,
      encodeErrorResult({ abi: errors, errorName: 'Error', args: ['closed on Sundays'] }),
    );
    expect((await diagnoseAnew(pausing)).text).toContain('“closed on Sundays”');
    expect((await transactionOf(pausing)).gasNote).toContain('closed on Sundays');
    expect(await diagnosisOf(hungry)).toMatchObject({
      outcome: 'fails',
      // Whether more gas was tried to its end depends on how fast the node is.
      text: expect.stringMatching(/^The receiver revert(s|ed) without a reason, (with|as)/),
      reason: { code: expect.stringMatching(/^(no-reason|out-of-gas)$/) },
    });

    const { outcome, gasLimit } = await diagnosisOf(poor);
    expect({ outcome, gasLimit }).toEqual({
      outcome: 'succeeds',
      gasLimit: expect.stringMatching(/^[1-9]0000$/),
    });
    const raised = await transactionOf(poor, `?gasLimit=${gasLimit}`);
    expect(raised.transaction.gas).not.toBeNull();
    await send(raised);
    expect(await statusOf(poor)).toBe('SUCCESS');
    expect((await diagnosisOf(poor)).outcome).toBe('executed');

    await lane.refuse([pausing], false);
    expect(await diagnoseAnew(pausing)).toMatchObject({
      outcome: 'succeeds',
      gasLimit: null,
      gas: expect.any(String),
      reason: null,
    });
    // By hand, so that the index does not know yet: the chain does.
    await lane.executeByHand(pausing);
    expect((await diagnoseAnew(pausing)).outcome).toBe('executed');
    expect(await statusOf(pausing)).toBe('SUCCESS');
  });
});

test.each(['1.5', '1.6'] as const)(
  'a diagnosis of %s names the time when anybody may execute',
  async (version) => {
    const lane = lab.lane(version, 'b');
    await lane.replaceRamps();
    const [fine, refused] = [await lane.sendOne({ data: '0x01' }), await lane.sendOne({ data: '0x02' })];
    await index();
    expect(await diagnosisOf(fine)).toMatchObject({
      outcome: 'not-yet',
      block: null,
      text: expect.stringContaining('not committed'),
    });
    const { blockNumber } = await lane.commit([fine, refused]);
    if (version === '1.5') await lane.bless([fine]);
    await lane.refuse([refused]);
    await index();
    const { timestamp } = await lab.a.block(blockNumber);
    const opensAt = new Date((Number(timestamp) + PERMISSIONLESS_AFTER_SECONDS + 1) * 1000).toISOString();
    expect(await diagnosisOf(fine)).toMatchObject({ outcome: 'not-yet', opensAt, reason: null });
    expect(await diagnosisOf(refused)).toMatchObject({
      outcome: 'not-yet',
      opensAt,
      reason: { code: 'unknown-error' },
    });

    await lab.travel(PERMISSIONLESS_AFTER_SECONDS + 10);
    await index();
    // A first attempt succeeds as a transaction, whatever becomes of the message: the diagnosis tells them apart.
    expect(await diagnoseAnew(refused)).toMatchObject({
      outcome: 'fails',
      reason: { code: 'unknown-error' },
    });
    expect(await diagnoseAnew(fine)).toMatchObject({ outcome: 'succeeds', gas: expect.any(String) });
    const served = await transactionOf(fine);
    expect(served.transaction.gas).not.toBeNull();
    await send(served, lab.a);
    expect(await statusOf(fine)).toBe('SUCCESS');
  },
);

describe('messages with an order', () => {
  const ordered = ['1.2', '1.5', '1.6'] as const;
  const pairs = new Map<string, readonly [first: SentMessage, second: SentMessage]>();
  beforeAll(async () => {
    for (const version of ordered) {
      const lane = lab.lane(version, 'a');
      await lane.replaceRamps();
      const pair = [
        await lane.sendOne({ data: '0x01', outOfOrder: false }),
        await lane.sendOne({ data: '0x02', outOfOrder: false }),
      ] as const;
      await commit(lane, pair);
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
    await lab.travel(PERMISSIONLESS_AFTER_SECONDS + 10);
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
    const unanswered = await serve({ destinations: destinations() });
    expectError(await unanswered.ask(`/v2/messages/${first.messageId}/diagnosis`), 503, 'DIAGNOSIS_FAILED');
  });

  test.each(ordered)(
    'one of %s waits for the one before it, and sending it earlier changes nothing',
    async (version) => {
      const lane = lab.lane(version, 'a');
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
      const blind = await serve();
      const path = `/v2/messages/${second.messageId}`;
      const unchecked = expect.stringContaining(
        'An earlier message of the same sender may have to be executed',
      );
      expect((await blind.ask(`${path}/diagnosis`)).json<Diagnosis>()).toMatchObject({
        outcome: 'untried',
        text: unchecked,
      });
      expect((await blind.ask(`${path}/manual-execution`)).json<ManualExecution>()).toMatchObject({
        trial: null,
        gasNote: unchecked,
      });

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
      const lane = lab.lane(version, 'a');
      await lane.replaceRamps();
      // Messages of 1.2 do not tell the gas of their tokens.
      const tokens = version === '1.2' ? [] : [{ amount: 5n }];
      const message = await lane.sendOne({ data: '0x1234', gasLimit: 400_000n, tokens });
      await commit(lane, [message]);
      // Results of verifiers are known from an attempt. Before the others were tried, the off-ramp catches their failure.
      if (version === '2.0') {
        await lane.execute(message, { fail: true });
        await lane.refuse([message], false);
      }
      await lab.b.foundation.receiver.send('consume', [message.messageId, 3_000n]);
      stuck.set(version, message);
    }
    await lab.travel(PERMISSIONLESS_AFTER_SECONDS + 10);
    await index();
  }, 300_000);

  /** Whether the message is executed, on a chain that forgets it. */
  async function isExecuted(version: string, served: ManualExecution): Promise<boolean> {
    const snapshot = await lab.b.rpc<Hex>('evm_snapshot');
    try {
      const { ramps } = stuck.get(version) as SentMessage;
      const [event] = ramps.offRamp.events(await send(served), 'ExecutionStateChanged');
      return event?.args.state === 2;
    } finally {
      await lab.b.rpc('evm_revert', [snapshot]);
    }
  }
  const transactionFrom = async (from: RunningServer, version: string, parameters = '') =>
    (
      await from.ask(`/v2/messages/${stuck.get(version)?.messageId}/manual-execution${parameters}`)
    ).json<ManualExecution>();

  const estimate = (answer: () => unknown) =>
    interfere(({ method }, truth) => (method === 'eth_estimateGas' ? answer() : truth));

  const causes: readonly (readonly [
    cause: string,
    arrange: () => Promise<RunningServer>,
    note: RegExp | null,
  ])[] = [
    // That is what `diagnosis: false` comes to, as well.
    ['no endpoint is configured', () => serve(), /no endpoint .* computed/],
    [
      'the endpoint is down',
      () => {
        const [, proxy] = proxies;
        proxy.isDown = true;
        onTestFinished(() => {
          proxy.isDown = false;
        });
        return serve({ destinations: destinations() });
      },
      /did not answer.* computed/,
    ],
    [
      'too many are tried at once',
      async () => {
        const busy = await serve({ destinations: destinations() });
        let held = 0;
        let release: () => void = () => undefined;
        const released = new Promise<void>((resolve) => {
          release = resolve;
        });
        interfere(async ({ method }, truth) => {
          if (method !== 'eth_call') return truth;
          held++;
          await released;
          return truth;
        });
        const others = Array.from({ length: 8 }, (_, place) =>
          transactionFrom(busy, '1.5', `?gasLimit=${500_000 + place}`),
        );
        onTestFinished(async () => {
          release();
          await Promise.all(others);
        });
        await vi.waitFor(() => expect(held).toBeGreaterThanOrEqual(8), { timeout: 120_000 });
        return busy;
      },
      /Too many.* computed/,
    ],
    [
      'the endpoint refuses to estimate',
      () => {
        estimate(() => {
          throw rpcError(-32_000, 'gas required exceeds allowance');
        });
        return serve({ destinations: destinations() });
      },
      /computed/,
    ],
    [
      'the endpoint estimates beyond all measure',
      () => {
        estimate(() => `0x${Number.MAX_SAFE_INTEGER.toString(16)}`);
        return serve({ destinations: destinations() });
      },
      /not credible.* computed/,
    ],
    [
      'the endpoint estimates less than the receiver gets',
      () => {
        estimate(() => '0x5208');
        return serve({ destinations: destinations() });
      },
      null,
    ],
  ];

  test.each(causes)('%s', async (_cause, arrange, note) => {
    const from = await arrange();
    for (const version of versions) {
      const served = await transactionFrom(from, version);
      expect(served.transaction.gas, version).toMatch(/^0x/);
      expect(Number(served.transaction.gas), version).toBeLessThan(3_000_000);
      if (note === null) expect(served.gasNote, version).toBeNull();
      else expect(served.gasNote, version).toMatch(note);
      expect(await isExecuted(version, served), version).toBe(true);
    }
  });

  test('with the estimate of a wallet the transaction succeeds, and the message fails', async () => {
    const served = await transactionFrom(server, '1.6');
    const { to, data } = served.transaction;
    const consume = (leftover: bigint) =>
      lab.b.foundation.receiver.send('consume', [stuck.get('1.6')?.messageId, leftover]);
    await consume(0n);
    const gas = await lab.b.rpc<Hex>('eth_estimateGas', [{ from: lab.b.foundation.bystander, to, data }]);
    expect(await isExecuted('1.6', { ...served, transaction: { ...served.transaction, gas } })).toBe(false);
    expect(await isExecuted('1.6', served)).toBe(true);
    await consume(3_000n);
  });

  test('a message of 1.2 with a token has none: only an endpoint knows the gas of its pool', async () => {
    const lane = lab.lane('1.2', 'b');
    await lane.replaceRamps();
    const message = await lane.sendOne({ tokens: [{ amount: 5n }] });
    await commit(lane, [message]);
    await lane.execute(message, { fail: true });
    await lane.refuse([message], false);
    await index();
    const answer = await (await serve()).ask(`/v2/messages/${message.messageId}/manual-execution`);
    expect(answer.json<ManualExecution>()).toMatchObject({
      transaction: { gas: null },
      gasNote: expect.stringContaining('do not tell how much gas their token pools get'),
    });
    await send(await transactionOf(message), lab.a);
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
    const lied = await serve({ destinations: destinations() });
    const path = `/v2/messages/${stuck.get('1.6')?.messageId}/diagnosis`;
    expectError(await lied.ask(path), 503, 'DIAGNOSIS_FAILED');
    // With another endpoint, that one is asked.
    const two = createDestinations({
      sources: lab.networks.map((network, place) =>
        labSource(network, { rpc: [proxies[place]?.url as URL, new URL(network.url)] }),
      ),
      signal: stopping.signal,
      writeLog: () => undefined,
    });
    const helped = await serve({ destinations: two });
    asked = 0;
    expect((await helped.ask(path)).json<Diagnosis>()).toMatchObject({ outcome: 'succeeds' });
  });
});

describe('the bounds of a diagnosis', () => {
  let stuck: SentMessage;
  beforeAll(async () => {
    const lane = lab.lane('1.6', 'a');
    await lane.replaceRamps();
    stuck = await lane.sendOne({ data: '0x0102', gasLimit: 2_000n });
    await lane.commit([stuck]);
    await lane.execute(stuck);
    await index();
  });
  const path = () => `/v2/messages/${stuck.messageId}/diagnosis`;

  test('many who ask at once share one, and only the off-ramp is called', async () => {
    const [, proxy] = proxies;
    const busy = await serve({ destinations: destinations() });
    proxy.calls.length = 0;
    const answers = await Promise.all(Array.from({ length: 20 }, () => busy.ask(path())));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    const simulated = proxy.calls.filter(
      ({ method }) => method === 'eth_call' || method === 'eth_estimateGas',
    );
    expect(simulated.length).toBeLessThanOrEqual(20);
    const targets = simulated.map(({ params }) => (params[0] as { to: string }).to);
    expect(new Set(targets)).toEqual(new Set([stuck.ramps.offRamp.address.toLowerCase()]));
    const others = new Set(proxy.calls.map(({ method }) => method));
    for (const method of ['eth_call', 'eth_estimateGas', 'eth_getBlockByNumber', 'eth_chainId'])
      others.delete(method);
    expect([...others]).toEqual([]);
  });

  test('what no gas limit changes is asked once for several of them', async () => {
    const [, proxy] = proxies;
    const busy = await serve({ destinations: destinations() });
    proxy.calls.length = 0;
    const limits = Array.from({ length: 8 }, (_, place) => 100_000 + place);
    const answers = await Promise.all(
      limits.map((gasLimit) =>
        busy.ask(`/v2/messages/${stuck.messageId}/manual-execution?gasLimit=${gasLimit}`),
      ),
    );
    for (const answer of answers) expect(answer.json<ManualExecution>().transaction.gas).not.toBeNull();
    const asked = proxy.calls.flatMap(({ method, params }) =>
      method === 'eth_call' ? [JSON.stringify(params)] : [],
    );
    // The call of the visitor and that of the off-ramp for each limit; state and threshold.
    expect(asked).toHaveLength(2 * limits.length + 2);
    expect(new Set(asked).size).toBe(asked.length);
  });

  test('calls are counted; when those of the day are used up, it says so and the transaction is still served', async () => {
    const perDay = 12;
    const frugal = await serve({ destinations: destinations(), diagnosisCallsPerDay: perDay });
    const transaction = (gasLimit: number) =>
      frugal.ask(`/v2/messages/${stuck.messageId}/manual-execution?gasLimit=${gasLimit}`);
    expect((await transaction(100_000)).json<ManualExecution>().transaction.gas).not.toBeNull();
    const spent = async () => {
      const { text } = await frugal.ask('/metrics');
      return Number(/^lanescan_diagnosis_calls_total (\d+)$/m.exec(text)?.[1]);
    };
    expect(await spent()).toBeGreaterThan(0);
    for (let limit = 100_001; limit < 100_005; limit++) expect((await transaction(limit)).status).toBe(200);
    const { message } = expectError(await frugal.ask(path()), 503, 'DIAGNOSIS_FAILED');
    expect(message).toMatch(/calls a day .* used up/);
    expect((await transaction(200_000)).status).toBe(200);
    expect(await spent()).toBeLessThanOrEqual(perDay);
    expect(frugal.log.filter((line) => line.includes('diagnosisCallsPerDay'))).toHaveLength(1);
    expect((await frugal.ask('/metrics')).text).toMatch(
      /lanescan_diagnoses_total\{outcome="over-budget"\} [1-9]/,
    );
  });

  test('it has a rate limit of its own', async () => {
    const limited = await serve({
      destinations: destinations(),
      rateLimit: { perSecond: 1_000, burst: 1_000, loopback: true },
    });
    const answers = await Promise.all(Array.from({ length: 35 }, () => limited.ask(path())));
    const refused = answers.filter(({ status }) => status === 429);
    expect(refused.length).toBeGreaterThan(0);
    expectError(refused[0] as (typeof answers)[0], 429, 'RATE_LIMITED');
    expect(Number(refused[0]?.headers['retry-after'])).toBeGreaterThan(0);
    expect((await limited.ask(`/v2/messages/${stuck.messageId}`)).status).toBe(200);
  });

  test('more than eight at once are refused, and outcomes are counted', async () => {
    const [, proxy] = proxies;
    const busy = await serve({ destinations: destinations() });
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    proxy.interfere = async ({ method }, truth) => {
      if (method === 'eth_call') await held;
      return truth;
    };
    onTestFinished(() => {
      release();
      proxy.interfere = honest;
    });
    const refused: ManualExecution[] = [];
    // Another gas limit is another simulation.
    const asked = Array.from({ length: 12 }, async (_, place) => {
      const answer = await busy.ask(
        `/v2/messages/${stuck.messageId}/manual-execution?gasLimit=${100_000 + place}`,
      );
      const body = answer.json<ManualExecution>();
      if (body.gasNote?.includes('Too many')) refused.push(body);
      return body;
    });
    await vi.waitFor(() => expect(refused).toHaveLength(4), { timeout: 120_000 });
    expectError(await busy.ask(path()), 503, 'DIAGNOSIS_FAILED');
    release();
    const tried = (await Promise.all(asked)).filter(({ trial }) => trial !== null);
    expect(tried).toHaveLength(8);
    const { text } = await busy.ask('/metrics');
    expect(text).toContain('lanescan_diagnoses_total{outcome="succeeds"} 8');
    expect(text).toContain('lanescan_diagnoses_total{outcome="refused"} 5');
    expect(text).toContain('lanescan_diagnoses_total{outcome="unanswered"} 0');
  });

  test('without an endpoint, or with one that is down, it says so and nothing of the inside', async () => {
    const unable = await serve();
    expect((await unable.ask(path())).json<Diagnosis>()).toMatchObject({
      outcome: 'untried',
      text: expect.stringContaining('no endpoint'),
      block: null,
    });
    const served = (
      await unable.ask(`/v2/messages/${stuck.messageId}/manual-execution`)
    ).json<ManualExecution>();
    expect(served.transaction.gas).not.toBeNull();
    expect(served.gasNote).toContain('no endpoint');

    const [, proxy] = proxies;
    proxy.isDown = true;
    onTestFinished(() => {
      proxy.isDown = false;
    });
    const broken = await serve({ destinations: destinations() });
    const answer = await broken.ask(path());
    expectError(answer, 503, 'DIAGNOSIS_FAILED');
    expect(answer.text).not.toContain('127.0.0.1');
    expect(answer.headers['retry-after']).toBeDefined();
    expect((await broken.ask('/metrics')).text).toContain('lanescan_diagnoses_total{outcome="unanswered"} 1');
    const unestimated = await broken.ask(`/v2/messages/${stuck.messageId}/manual-execution`);
    expect(unestimated.json<ManualExecution>()).toMatchObject({
      transaction: { gas: expect.any(String) },
      trial: null,
      gasNote: expect.stringContaining('did not answer'),
    });
  });

  test('lanescan diagnose tells the same, beside the database and over the network', async () => {
    const config = writeConfiguration(lab, freshFolder());
    const env = { DATABASE_URL: server.store.url };
    const near = await lanescan(['diagnose', stuck.messageId, '--config', config], { env });
    expect(near).toMatchObject({ code: 0, stderr: '' });
    expect(near.stdout).toMatch(/^Would succeed on .*, block \d+/);
    expect(near.stdout).toMatch(
      new RegExp(`\\$ curl 'http.*/v2/messages/${stuck.messageId}/manual-execution\\?gasLimit=\\d+'`),
    );
    const far = await lanescan(['diagnose', stuck.messageId, '--url', server.url]);
    expect(far.stdout.replace(server.url, 'URL').replace(/block.*/, '')).toBe(
      near.stdout.replace(/http[^/]*\/\/[^/]*/, 'URL').replace(/block.*/, ''),
    );
    const json = await lanescan(['diagnose', stuck.messageId, '--url', server.url, '--json']);
    expect(JSON.parse(json.stdout)).toEqual(await diagnosisOf(stuck));

    const unable = await serve();
    const refused = await lanescan(['diagnose', stuck.messageId, '--url', unable.url]);
    expect(refused.code).toBe(3);
    expect(refused.stdout).toMatch(/^Not tried on .*\n.*has no endpoint of/);
  });
});
