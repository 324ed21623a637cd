// @module-tag slow: starts chain nodes and the official client for every version
/** Execution by hand through us: the official client takes its inputs from the service and executes on real off-ramps. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { toHex } from 'viem';
import { mnemonicToAccount } from 'viem/accounts';
import { describe, expect, test } from 'vitest';
import { type Lab, type Lane, type SentMessage, versions } from '../lab/lab.ts';
import { CCIPAPIClient } from '../lab/sdk.ts';
import { EVMChain, silent } from '../lab/sdk-chain.ts';
import { createLabService } from '../sdk/lab-service.ts';

const service = createLabService();
const { index, recordOf } = service;

/** A new client each time: one remembers what it was told for some seconds. */
const client = () => new CCIPAPIClient(service.server.url, { logger: silent });

/** Up to 1.6 all of them under one root; the one in the middle fails. */
async function sendAndFail(lane: Lane): Promise<SentMessage> {
  const messages = await lane.send({
    count: 3,
    data: (index) => `0x0${index}`,
    tokens: [{ amount: 10n ** 15n }],
  });
  await lane.prepare(messages);
  // Where there is an order, the one before comes first.
  const [first, failing] = messages as [SentMessage, SentMessage];
  await lane.execute(first);
  const { state } = await lane.execute(failing, { fail: true });
  expect(state).toBe('failure');
  return failing;
}

test.each(versions)(
  'the client executes a failed message of %s by itself when it is given the id alone',
  async (version) => {
    const lane = service.lab.lane(version, 'b');
    const message = await sendAndFail(lane);
    await index();
    expect(await recordOf(message)).toMatchObject({ status: 'FAILED', readyForManualExecution: true });
    await lane.refuse([message], false);
    const chain = await EVMChain.fromUrl(service.lab.a.url, { apiClient: client(), logger: silent });
    const wallet = await service.lab.a.sdkWallet();
    const { receipt, log } = await chain
      .execute({ messageId: message.messageId, wallet })
      .finally(() => chain.destroy());
    expect(receipt).toMatchObject({ messageId: message.messageId, state: 2 });
    await index();
    expect(await recordOf(message)).toMatchObject({
      status: 'SUCCESS',
      readyForManualExecution: false,
      receiptTransactionHash: log.transactionHash,
    });
  },
);

describe('verifiers of a 2.0 message', () => {
  const nobody = '0x0000000000000000000000000000000000000000';
  /** The lab's resolvers go by one address on both chains, as those of real networks often do. */
  const cases: readonly (readonly [
    what: string,
    receiver: 'receiver' | 'strictReceiver',
    named: number,
    listed: readonly (readonly [source: string, dest: string, isRequired: boolean, isCompleted: boolean])[],
  ])[] = [
    [
      'are those that the destination asks for, each as it asks for it',
      'strictReceiver',
      2,
      [
        ['verifier', 'verifier', true, true],
        ['secondVerifier', 'secondVerifier', false, true],
      ],
    ],
    [
      'may be fewer than the destination asks for',
      'strictReceiver',
      1,
      [
        ['verifier', 'verifier', true, true],
        ['nobody', 'secondVerifier', false, true],
      ],
    ],
    [
      'may be more than the destination asks for',
      'receiver',
      2,
      [
        ['verifier', 'verifier', true, true],
        ['secondVerifier', 'nobody', false, false],
      ],
    ],
  ];

  test.each(cases)('%s; the message can be executed by hand', async (_what, receiver, verifiers, listed) => {
    const lane = service.lab.lane('2.0', 'a');
    const message = await lane.sendOne({ verifiers, receiver: service.lab.b.foundation[receiver].address });
    await lane.execute(message, { fail: true });
    await index();

    const { status, verifiers: shown } = await recordOf(message);
    expect(status).toBe('FAILED');
    const nameOn = (network: Lab['a'], address: string) =>
      address === nobody
        ? 'nobody'
        : Object.entries(network.contracts['2.0'] ?? {}).find(
            ([, other]) => other.toLowerCase() === address.toLowerCase(),
          )?.[0];
    expect(
      shown?.items.map((item) => [
        nameOn(service.lab.a, item.sourceAddress),
        nameOn(service.lab.b, item.destAddress),
        item.isRequired,
        item.status === 'COMPLETED',
      ]),
    ).toEqual(listed);
    const { verificationComplete } = (
      await service.server.ask(`/v2/messages/${message.messageId}/execution-inputs`)
    ).json<{ verificationComplete: boolean }>();
    expect(verificationComplete).toBe(true);

    await lane.refuse([message], false);
    const input = await client().getExecutionInput(message.messageId);
    const chain = await service.lab.b.sdk();
    const { receipt } = await chain.execute({
      offRamp: input.offRamp,
      input,
      wallet: await service.lab.b.sdkWallet(),
    });
    expect(receipt.state).toBe(2);
    await index();
    expect((await recordOf(message)).status).toBe('SUCCESS');
  });
});

test('the guide does what it says', async () => {
  const guide = readFileSync(new URL('../../docs/api/manual-execution.md', import.meta.url), 'utf8');
  const blocks = (language: string) =>
    [...guide.matchAll(new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``, 'g'))].map(([, text = '']) =>
      text.replaceAll('http://localhost:8080', service.server.url),
    );
  const lane = service.lab.lane('1.6', 'a');
  const message = await sendAndFail(lane);
  await index();
  await lane.refuse([message], false);

  // The accounts of a hardhat node are the same everywhere.
  const { privateKey } = mnemonicToAccount('test test test test test test test test test test test junk', {
    addressIndex: 39,
  }).getHdKey();
  const env = {
    ...process.env,
    MESSAGE_ID: message.messageId,
    DESTINATION_RPC: service.lab.b.url,
    PRIVATE_KEY: toHex(privateKey ?? new Uint8Array()),
  };
  const shown: string[] = [];
  for (const command of blocks('sh')) {
    shown.push((await promisify(execFile)('bash', ['-c', command], { env })).stdout);
  }
  const [stuck = '', inputs = ''] = shown;
  expect(shown).toHaveLength(2);
  expect(stuck).toContain(message.messageId);
  expect(JSON.parse(inputs)).toMatchObject({ version: '1.6.0', messageBatch: [{}, {}, {}] });

  const [program = '', ...others] = blocks('js');
  expect(others).toEqual([]);
  const { stdout } = await promisify(execFile)('node', ['--input-type=module', '--eval', program], {
    env,
    // Where the SDK is installed.
    cwd: new URL('../lab/', import.meta.url),
  });
  expect(stdout).toMatch(/^executed$/m);
  await index();
  expect((await recordOf(message)).status).toBe('SUCCESS');
});
