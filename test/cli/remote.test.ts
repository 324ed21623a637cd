/** The reading commands with `--url`: the same output from a server as from its database. */

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Message } from '../../src/domain/message.ts';
import { type RunningServer, startServer, startSimulatedServer } from '../api/running-server.ts';
import { evmAddress, makeMessage, solanaDevnet } from '../fixtures.ts';
import { freshFolder, lanescan } from './program.ts';

const failed = makeMessage({ number: 2, status: 'FAILED', sendTimestamp: '2026-01-02T00:00:00.000Z' });
const messages: readonly Message[] = [
  makeMessage({ number: 1, status: 'SUCCESS', sendTimestamp: '2026-01-03T00:00:00.000Z' }),
  failed,
  makeMessage({ number: 5, destNetworkInfo: solanaDevnet, sendTimestamp: '2025-12-31T23:59:59.999Z' }),
  makeMessage({ number: 8, destNetworkInfo: solanaDevnet, sendTimestamp: '2025-12-30T00:00:00.000Z' }),
];

let server: RunningServer;
beforeAll(async () => {
  server = await startServer(messages);
});
afterAll(() => server.close());

const local = (...args: readonly string[]) => lanescan(args, { env: { DATABASE_URL: server.store.url } });
const remote = (...args: readonly string[]) => lanescan([...args, '--url', server.url]);

test.each([
  [['search', '--json']],
  [['search', '--all', '--limit', '1', '--json']],
  [['search', '--status', 'failed', '--json']],
  [['search', '--source', 'sepolia', '--dest', 'solana-devnet', '--json']],
  [['search', '--sent-after', '2026-01-01', '--json']],
  [['search', failed.messageId]],
  [['show', failed.messageId]],
  [['show', failed.messageId, '--json']],
  [['lanes']],
  [['lanes', '--dest', 'fuji', '--window-days', '3', '--json']],
  [['export']],
  [['export', '--format', 'ndjson', '--status', 'FAILED,SUCCESS']],
  [['audit']],
])('%j prints the same', async (args) => {
  const [there, here] = [await remote(...args), await local(...args)];
  // The command for a manual execution names the server that provides the proof.
  const anyServer = (text: string) => text.replaceAll(/--api \S+/g, '--api …');
  expect(anyServer(there.stdout)).toBe(anyServer(here.stdout));
  expect(there.stdout).not.toBe('');
  expect(there.code).toBe(here.code);
});

test('the filters restrict: a date, a status in lower case, a network by a part of its name', async () => {
  const idsOf = async (...args: readonly string[]) =>
    (await remote('search', ...args, '--json')).stdout
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as Message).messageId);
  const ids = messages.map(({ messageId }) => messageId);
  expect(await idsOf('--sent-after', '2026-01-01')).toEqual(ids.slice(0, 2));
  expect(await idsOf('--sent-before', '2026-01-01')).toEqual(ids.slice(2));
  expect(await idsOf('failed')).toEqual([failed.messageId]);
  expect(await idsOf('sepolia', 'to', 'fuji')).toEqual(ids.slice(0, 2));
  expect(await idsOf('sepolia -> solana-devnet', '--sent-after', '2025-12-31')).toEqual(ids.slice(2, 3));
  expect(await idsOf(`${failed.messageId}`)).toEqual([failed.messageId]);
  expect(await idsOf(`${failed.sender}, ${failed.messageId}`)).toEqual([failed.messageId]);
});

test('the next page is a command that works', async () => {
  const { stderr } = await remote('search', '--limit', '3');
  const [, next = ''] = /^ {2}lanescan (search .*)$/m.exec(stderr) ?? [];
  expect(next).toContain(`--url ${server.url}`);
  const { stdout } = await lanescan(next.split(' '));
  expect(stdout).toContain(messages[3]?.messageId);
});

test('a file of an export is complete or not there', async () => {
  const folder = freshFolder();
  const file = path.join(folder, 'all.ndjson');
  const { code, stderr } = await remote('export', '--output', file);
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringMatching(/^[\d,]+ bytes exported to /) });
  expect(readFileSync(file, 'utf8').trim().split('\n')).toHaveLength(messages.length);
});

test('audit says what it cannot check from there', async () => {
  const { code, stderr } = await remote('audit');
  expect(stderr).toContain('NOT complete: 2 missing');
  expect(stderr).toContain('the ends of lanes and the commits are not checked');
  expect(code).toBe(1);
});

describe('refusals', () => {
  test('an unknown message, and a shortened id', async () => {
    const unknown = await remote('show', '0'.repeat(64));
    expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining('not found') });
    const short = await remote('show', failed.messageId.slice(0, 12));
    expect(short).toMatchObject({ code: 0, stdout: expect.stringContaining(failed.messageId) });
    const nobody = await remote('show', '0x123456');
    expect(nobody).toMatchObject({ code: 1, stderr: expect.stringContaining('No message ID begins with') });
  });

  test('a cursor of another store', async () => {
    const { code, stderr } = await remote('search', '--cursor', 'nonsense');
    expect(stderr).toMatch(/^lanescan: http:\S+ answered 400: cursor is damaged/);
    expect(code).toBe(1);
  });

  test('a server that does not run', async () => {
    const { code, stderr } = await lanescan(['lanes', '--url', 'http://127.0.0.1:9']);
    expect(stderr).toMatch(/^lanescan: http:\/\/127\.0\.0\.1:9 could not be read \(.+\)\. Check the URL/);
    expect(code).toBe(1);
  });
});

/** Another kind of server, which answers as it is told. */
async function otherServer(
  answer: (
    seen: number,
    headers: NodeJS.Dict<string | string[]>,
  ) => {
    readonly status: number;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body?: string;
  },
): Promise<string> {
  let seen = 0;
  const other = createServer((request, response) => {
    const { status, headers, body } = answer(++seen, request.headers);
    response.writeHead(status, headers).end(body);
  });
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void other.close());
  return `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
}

test('the key comes from the environment, and no redirect takes it elsewhere', async () => {
  const keys: unknown[] = [];
  const target = await otherServer((_, headers) => {
    keys.push(headers['x-api-key']);
    return { status: 200, body: '{"data":[]}' };
  });
  const redirecting = await otherServer(() => ({ status: 302, headers: { Location: `${target}/x` } }));
  const env = { LANESCAN_API_KEY: 'the-key' };
  const moved = await lanescan(['search', '--url', redirecting], { env });
  expect(moved).toMatchObject({ code: 1, stderr: expect.stringContaining(`redirects to ${target}/x`) });
  expect(keys).toEqual([]);
  expect((await lanescan(['search', '--url', `${target}/v2/`], { env })).code).toBe(0);
  expect((await lanescan(['search', '--url', target])).code).toBe(0);
  expect(keys).toEqual(['the-key', undefined]);
});

test('what is not a Lanescan server is named as such', async () => {
  const page = await otherServer(() => ({ status: 404, body: '<h1>Not here</h1>' }));
  const { code, stderr } = await lanescan(['search', '--url', page]);
  expect(stderr).toContain('answers, but not as a Lanescan server does');
  expect(code).toBe(1);
});

test('simulated data is named as simulated', async () => {
  const simulated = await startSimulatedServer([makeMessage({ sender: evmAddress('a') })]);
  onTestFinished(() => simulated.close());
  const { stderr } = await lanescan(['search', '--url', simulated.url]);
  expect(stderr.match(/SIMULATED/g)).toHaveLength(1);
});
