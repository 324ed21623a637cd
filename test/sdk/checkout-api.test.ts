// @module-tag slow: runs the official client's own tests, for those who have a checkout of it
/**
 * The integration tests of the SDK's API client, of a checkout of ccip-tools-ts (`CCIP_TOOLS=path`, with its packages
 * installed). They are written for the hosted service and messages that it has; here they are led to this service, which has
 * messages with the same ids, transactions and senders.
 */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Message } from '../../src/domain/message.ts';
import { type RunningServer, startServer } from '../api/running-server.ts';
import { fuji, makeMessage, networkInfo, sepolia, solanaDevnet } from '../fixtures.ts';

const { CCIP_TOOLS: checkout = '' } = process.env;
const sdk = path.resolve(checkout, 'ccip-sdk');
const testFile = 'src/api/api.integration.test.ts';
const TIMEOUT_MS = 300_000;

/** What the tests of the checkout ask for, by the names that they have there. */
function constantsOf(source: string): ReadonlyMap<string, string> {
  const found = source.matchAll(/^const ([A-Z_]+) = '([^']+)'/gm);
  return new Map([...found].map(([, name = '', value = '']) => [name, value]));
}

function messagesOf(constants: ReadonlyMap<string, string>): readonly Message[] {
  const constant = (name: string): string => {
    const value = constants.get(name);
    if (value === undefined) throw new Error(`${testFile} of the checkout has no constant ${name}`);
    return value;
  };
  const sender = constant('EVM_SENDER');
  const solanaSender = constant('SOLANA_SENDER');
  const delivered = { status: 'SUCCESS' } as const;
  // Recent ones: the latency of a lane is that of the messages which were delivered lately.
  const now = Date.now();
  const sentAt = (number: number) => new Date(now - 600_000 - number * 1000).toISOString();
  const aged = (number: number, given: Partial<Message>) =>
    makeMessage({
      number,
      ...delivered,
      sendTimestamp: sentAt(number),
      receiptTimestamp: new Date(now - 540_000 - number * 1000).toISOString(),
      ...given,
    });
  return [
    aged(1, {
      messageId: constant('KNOWN_MESSAGE_ID'),
      sendTransactionHash: constant('KNOWN_TX_HASH'),
      sourceNetworkInfo: sepolia,
      destNetworkInfo: fuji,
    }),
    ...Array.from({ length: 12 }, (_, index) => aged(2 + index, { sender })),
    // One asks for the latency of messages that waited for ten blocks.
    ...Array.from({ length: 12 }, (_, index) => aged(30 + index, { version: '2.0.0', finality: 10 })),
    makeMessage({ number: 20, sender, status: 'FAILED', sendTimestamp: sentAt(20) }),
    aged(21, { sender, destNetworkInfo: solanaDevnet, receiver: solanaSender }),
    aged(22, { sender: solanaSender, sourceNetworkInfo: solanaDevnet }),
    aged(23, { sender: constant('APTOS_SENDER'), sourceNetworkInfo: networkInfo('aptos-testnet') }),
  ];
}

describe.skipIf(checkout === '')('the API tests of the checkout', () => {
  let server: RunningServer;
  let folder: string;
  let hostedService: string;

  beforeAll(async () => {
    folder = mkdtempSync(path.join(os.tmpdir(), 'lanescan-checkout-'));
    const constants = constantsOf(readFileSync(path.join(sdk, testFile), 'utf8'));
    hostedService = constants.get('STAGING_API_URL') ?? 'https://api.ccip.chain.link';
    server = await startServer(messagesOf(constants));
  });
  afterAll(async () => {
    await server?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test('pass', async () => {
    const redirect = path.join(folder, 'redirect.mjs');
    writeFileSync(
      redirect,
      `const hosted = ${JSON.stringify(hostedService)};
const original = globalThis.fetch;
globalThis.fetch = (url, ...rest) => original(String(url).replace(hosted, ${JSON.stringify(server.url)}), ...rest);
`,
    );
    const output = await promisify(execFile)(
      process.execPath,
      ['--import', 'tsx', '--import', redirect, '--test', '--test-reporter', 'tap', testFile],
      { cwd: sdk, timeout: TIMEOUT_MS },
    ).then(
      ({ stdout }) => stdout,
      (failure: { readonly stdout: string; readonly stderr: string }) => failure.stdout + failure.stderr,
    );
    const count = (what: string) => Number(new RegExp(`^# ${what} (\\d+)$`, 'm').exec(output)?.[1]);
    expect(count('fail'), output).toBe(0);
    expect(count('skipped')).toBe(0);
    expect(count('pass')).toBeGreaterThan(20);
  });
});
