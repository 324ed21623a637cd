/** The reading commands with `--url`: the same output from a server as from its database. */

import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Message } from '../../src/domain/message.ts';
import { serverForAll, startSimulatedServer } from '../api/running-server.ts';
import { evmAddress, makeMessage, solanaDevnet } from '../fixtures.ts';
import { listenWith } from '../listening.ts';
import { freshFolder, lanescan, lanescanOn } from './program.ts';

const failed = makeMessage({ number: 2, status: 'FAILED', sendTimestamp: '2026-01-02T00:00:00.000Z' });
const messages: readonly Message[] = [
  makeMessage({ number: 1, status: 'SUCCESS', sendTimestamp: '2026-01-03T00:00:00.000Z' }),
  failed,
  makeMessage({ number: 5, destNetworkInfo: solanaDevnet, sendTimestamp: '2025-12-31T23:59:59.999Z' }),
  makeMessage({ number: 8, destNetworkInfo: solanaDevnet, sendTimestamp: '2025-12-30T00:00:00.000Z' }),
];

const server = serverForAll(messages);

const local = (...args: readonly string[]) => lanescanOn(server.store, ...args);
const remote = (...args: readonly string[]) => lanescan([...args, '--url', server.url]);

test.each([
  'search --json',
  'search --all --limit 1 --json',
  'search --status failed --json',
  'search --source sepolia --dest solana-devnet --json',
  'search --sent-after 2026-01-01 --json',
  `search ${failed.messageId}`,
  `show ${failed.messageId}`,
  `show ${failed.messageId} --json`,
  'lanes',
  'lanes --dest fuji --window-days 3 --json',
  'export',
  'export --format ndjson --status FAILED,SUCCESS',
  'audit',
])('%s prints the same', async (command) => {
  const args = command.split(' ');

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

describe('an error that the server tells', () => {
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

test('the key comes from the environment, and no redirect takes it elsewhere', async () => {
  const keys: unknown[] = [];
  const { origin: target } = await listenWith((request, response) => {
    keys.push(request.headers['x-api-key']);
    response.end('{"data":[]}');
  });
  const redirecting = await listenWith((_request, response) =>
    response.writeHead(302, { Location: `${target}/x` }).end(),
  );
  const env = { LANESCAN_API_KEY: 'the-key' };
  const moved = await lanescan(['search', '--url', redirecting.origin], { env });
  expect(moved).toMatchObject({ code: 1, stderr: expect.stringContaining(`redirects to ${target}/x`) });
  expect(keys).toEqual([]);
  expect((await lanescan(['search', '--url', `${target}/v2/`], { env })).code).toBe(0);
  expect((await lanescan(['search', '--url', target])).code).toBe(0);
  expect(keys).toEqual(['the-key', undefined]);
});

test('what is not a Lanescan server is named as such', async () => {
  const page = await listenWith((_request, response) => response.writeHead(404).end('<h1>Not here</h1>'));
  const { code, stderr } = await lanescan(['search', '--url', page.origin]);
  expect(stderr).toContain('answers, but not as a Lanescan server does');
  expect(code).toBe(1);
});

test('simulated data is named as simulated', async () => {
  const simulated = await startSimulatedServer([makeMessage({ sender: evmAddress('a') })]);
  onTestFinished(() => simulated.close());
  const { stderr } = await lanescan(['search', '--url', simulated.url]);
  expect(stderr.match(/SIMULATED/g)).toHaveLength(1);
});
