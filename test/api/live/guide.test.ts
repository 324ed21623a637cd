/** docs/api/live.md: its commands work, and its figures are those of the program. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { defaultLiveLimits } from '../../../src/api/live/live.ts';
import { makeExecuted, makeMessage, makeSent } from '../../fixtures.ts';
import { startServers } from './live-server.ts';

const guide = readFileSync(new URL('../../../docs/api/live.md', import.meta.url), 'utf8');
const commands = [...guide.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, command = '']) => command);
const messageId = /0x[0-9a-f]{64}/.exec(guide)?.[0] ?? '';

test('the commands of the guide show what it says', async () => {
  const [server] = await startServers({ heartbeatMs: 200 });
  const message = makeMessage({ messageId });
  await server.store.apply([makeSent(message)]);
  await server.store.apply([makeExecuted(message, true)]);
  const shown: string[] = [];
  for (const command of commands) {
    const { stdout } = await promisify(execFile)('bash', [
      '-c',
      command.replaceAll('http://localhost:8080', server.url),
    ]);
    shown.push(stdout);
  }
  const [history = '', waited, everything, filtered] = shown;
  expect(JSON.parse(history)).toMatchObject({ messageId, status: 'SUCCESS', changes: [{}, {}] });
  expect(waited).toMatch(/^HTTP\/1\.1 200 [\s\S]*x-lanescan-wait: reached\r\n[\s\S]*"status":"SUCCESS"/i);
  expect(everything).toMatch(
    /^retry: 2000\nid: 0\nevent: ready\ndata: {"position":"0"}\n\nid: 1\nevent: created\ndata: {"position":"1",.*\n\n$/,
  );
  expect(filtered).toMatch(/^retry: 2000\nid: 1\nevent: ready\n/);
  expect(shown).toHaveLength(4);
});

test('the figures of the guide are the defaults', () => {
  const { streams, streamsPerAddress, waiters, waitersPerAddress, heartbeatMs, stalledMs } =
    defaultLiveLimits;
  const number = (value: number) => value.toLocaleString('en');
  const text = guide.replaceAll('\n', ' ');
  expect(text).toContain(
    `${streamsPerAddress} streams and ${waitersPerAddress} waits for one address (IPv6: a /64), ${number(streams)} and ${number(waiters)} for a server`,
  );
  expect(text).toContain(`Every ${heartbeatMs / 1000} seconds a comment`);
  expect(text).toContain(`read nothing for ${stalledMs / 1000} seconds`);
});
