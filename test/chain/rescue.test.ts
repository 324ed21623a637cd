// @module-tag slow: starts chain nodes with the contracts of every version
/** Rescuing messages: the transaction that we build executes them on real off-ramps, and a diagnosis foretells the outcome. */
import type { Hex } from 'viem';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ManualExecution } from '../../src/api/schemas/manual-execution.ts';
import type { Message } from '../../src/domain/message.ts';
import { expectError, type RunningServer, startServer } from '../http/running-server.ts';
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
import { indexOnce } from './indexing.ts';

let lab: Lab;
let server: RunningServer;

beforeAll(async () => {
  [lab, server] = await Promise.all([startLab(), startServer()]);
}, 300_000);
afterAll(async () => {
  await server?.close();
  await lab?.stop();
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
