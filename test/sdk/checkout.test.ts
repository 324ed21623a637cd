// @module-tag slow: starts chain nodes and the official command line, for those who have a checkout of it
/**
 * `ccip-cli` of a checkout of ccip-tools-ts (`CCIP_TOOLS=path`, with its packages installed), pointed at the service: the
 * commands that `lanescan show` prints, as they are printed, and what users ask before and after.
 */
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { toHex } from 'viem';
import { mnemonicToAccount } from 'viem/accounts';
import { describe, expect, test } from 'vitest';
import { lanescan } from '../cli/program.ts';
import type { Lane, SentMessage, Version } from '../lab/lab.ts';
import { createLabService, prepare } from './lab-service.ts';

const { CCIP_TOOLS: checkout = '', ...environment } = process.env;
const program = path.resolve(checkout, 'ccip-cli');
const COMMAND_TIMEOUT_MS = 120_000;

/** What the client of an older record crashed with. */
const CRASHES = /Cannot read propert|Unsupported data format|TypeError/;

describe.skipIf(checkout === '')('ccip-cli of the checkout', () => {
  const service = createLabService();
  const { index, recordOf } = service;

  /** Runs a line as a user types it; never throws. */
  const run = async (command: string, lane: Lane) => {
    // The accounts of the nodes are the same everywhere.
    const { privateKey } = mnemonicToAccount('test test test test test test test test test test test junk', {
      addressIndex: 39,
    }).getHdKey();
    const env = {
      ...environment,
      PATH: `${program}:${environment.PATH}`,
      USER_KEY: toHex(privateKey ?? new Uint8Array()),
      SOURCE_RPC: service.lab.network(lane.from).url,
      DEST_RPC: service.lab.network(lane.to).url,
    };
    // In its own folder the program finds the packages of the checkout.
    const options = { env, cwd: program, timeout: COMMAND_TIMEOUT_MS };
    return promisify(execFile)('bash', ['-c', `${command} < /dev/null`], options).then(
      ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
      ({ code, stdout = '', stderr = '' }) => ({ code: code ?? -1, output: `${stdout}${stderr}` }),
    );
  };

  /** The last of as many messages of one transaction; the others are delivered. */
  const sendAndFail = async (lane: Lane, count: number): Promise<SentMessage> => {
    const messages = await lane.send({ count, data: (number) => `0x0${number}` });
    await prepare(lane, messages);
    for (const message of messages.slice(0, -1)) await lane.execute(message);
    const failing = messages.at(-1) as SentMessage;
    expect((await lane.execute(failing, { fail: true })).state).toBe('failure');
    await index();
    await lane.refuse([failing], false);
    return failing;
  };

  const printedCommands = async (message: SentMessage): Promise<readonly string[]> => {
    const env = { DATABASE_URL: service.server.store.url, LANESCAN_PORT: String(service.server.port) };
    const { stdout } = await lanescan(['show', message.messageId], { env });
    return [...stdout.matchAll(/^\s*\$ (ccip-cli .*)$/gm)].map(([, command = '']) => command);
  };

  describe.each<readonly [Version, number]>([
    ['1.5', 2],
    ['1.6', 2],
    ['2.0', 1],
  ])('version %s', (version, commands) => {
    const cases = [1, 3].flatMap((count) =>
      Array.from({ length: commands }, (_, number) => ({ count, number })),
    );

    test.each(cases)('command $number of `lanescan show`, with $count in the transaction', async (given) => {
      const lane = service.lab.lane(version, 'a');
      const message = await sendAndFail(lane, given.count);
      const printed = await printedCommands(message);
      expect(printed).toHaveLength(commands);
      const { code, output } = await run(printed[given.number] ?? '', lane);
      expect(code, output).toBe(0);
      await index();
      expect(await recordOf(message)).toMatchObject({ status: 'SUCCESS' });
    });

    test('show of a message at every stage, with an endpoint of the destination alone', async () => {
      const lane = service.lab.lane(version, 'b');
      const message = await lane.sendOne();
      const show = async () => {
        await index();
        const command = `ccip-cli show ${message.messageId} --api ${service.server.url} --indexer ${service.server.url} --rpc $DEST_RPC`;
        const { output } = await run(command, lane);
        expect(output).not.toMatch(CRASHES);
        expect(output).toContain(message.messageId);
      };
      await show();
      await prepare(lane, [message]);
      await show();
      await lane.execute(message);
      await show();
    });

    test('manual-exec before the commit says why not', async () => {
      const lane = service.lab.lane(version, 'b');
      const message = await lane.sendOne();
      await index();
      const command = `ccip-cli manual-exec ${message.messageId} --api ${service.server.url} --rpc $DEST_RPC`;
      const { code, output } = await run(command, lane);
      expect(code).not.toBe(0);
      expect(output).not.toMatch(CRASHES);
      expect(output).not.toMatch(/message.*not found/i);
    });
  });

  test('search and lane-latency', async () => {
    const lane = service.lab.lane('1.6', 'a');
    const message = await sendAndFail(lane, 1);
    const search = await run(
      `ccip-cli search messages -f json --q ${message.transactionHash} --api ${service.server.url}`,
      lane,
    );
    expect(search.output).toContain(message.messageId);
    const latency = await run(
      `ccip-cli lane-latency geth-testnet anvil-devnet --api ${service.server.url}`,
      lane,
    );
    expect(latency.output).not.toMatch(CRASHES);
  });
});
