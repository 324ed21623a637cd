/** docs/api/{http,lanes,live}.md: their commands work as they stand, and their figures are those of the program. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { defaultLiveLimits } from '../../../src/api/live/live.ts';
import { lanescan } from '../../cli/program.ts';
import { makeExecuted, makeMessage, makeSent } from '../../fixtures.ts';
import { startServers } from '../live/live-server.ts';
import { serverForAll } from '../running-server.ts';

function readGuide(name: string) {
  const text = readFileSync(new URL(`../../../docs/api/${name}.md`, import.meta.url), 'utf8');
  return { text, blocks: [...text.matchAll(/^```sh\n(.*?)^```/gms)].map(([, block = '']) => block) };
}

async function run({ url }: { readonly url: string }, block = ''): Promise<string> {
  const commands = block.replaceAll('http://localhost:8080', url);
  const { stdout, stderr } = await promisify(execFile)('bash', ['--norc', '-euc', commands]);
  expect(stderr).toBe('');
  return stdout;
}

const server = serverForAll(
  Array.from({ length: 30 }, (_, number) => makeMessage({ number: number + 1, status: 'SUCCESS' })),
);

describe('http.md', () => {
  const { blocks } = readGuide('http');

  test.each([
    ['asking again for what has not changed is a 304', blocks[0], /^304\n$/],
    [
      'compressed answers are read with the usual tools',
      blocks[1]?.replace(' | head -c 200', ''),
      /^\{"data":\[\{.*"hasNextPage":false.*\}30\n$/s,
    ],
    [
      'the next page is in Link',
      blocks[2],
      /^link: <\?cursor=[\w-]+&limit=1&view=summary>; rel="next"\r\n$/i,
    ],
    ['a key that nobody knows is no error', blocks[3], /^HTTP\/1\.1 200 OK\r\n$/],
    ['a preflight is answered', blocks[4], /^HTTP\/1\.1 204 No Content\r\n/],
  ])('%s', async (_claim, block, output) => {
    expect(await run(server, block)).toMatch(output);
    expect(blocks).toHaveLength(5);
  });
});

describe('lanes.md', () => {
  const commands = readGuide('lanes').blocks.flatMap((block) => block.trim().split('\n'));

  test.each(commands)('%s', async (command) => {
    expect(commands.length).toBeGreaterThanOrEqual(8);
    if (command.startsWith('curl -s ')) {
      const asked = command.replace('curl -s', 'curl -sS --fail-with-body');
      return expect(JSON.parse(await run(server, asked))).toBeTypeOf('object');
    }
    const [, ...args] = command.split(' ');
    const { code, stdout } = await lanescan(args, { env: { DATABASE_URL: server.store.url } });
    expect(code).toBe(0);
    if (args.includes('--json')) expect(JSON.parse(stdout)).toBeTypeOf('object');
    else expect(stdout).toContain('Ethereum Sepolia → ');
  });
});

describe('live.md', () => {
  const { text, blocks } = readGuide('live');

  test('the commands show what it says', async () => {
    const [live] = await startServers({ heartbeatMs: 200 });
    const messageId = /0x[0-9a-f]{64}/.exec(text)?.[0] ?? '';
    const message = makeMessage({ messageId });
    await live.store.apply([makeSent(message)]);
    await live.store.apply([makeExecuted(message, true)]);
    const shown: string[] = [];
    for (const block of blocks) shown.push(await run(live, block));
    const [history = '', waited, everything, filtered] = shown;
    expect(JSON.parse(history)).toMatchObject({ messageId, status: 'SUCCESS', changes: [{}, {}] });
    expect(waited).toMatch(/^HTTP\/1\.1 200 [\s\S]*x-lanescan-wait: reached\r\n[\s\S]*"status":"SUCCESS"/i);
    expect(everything).toMatch(
      /^retry: 2000\nid: 0\nevent: ready\ndata: {"position":"0"}\n\nid: 1\nevent: created\ndata: {"position":"1",.*\n\n$/,
    );
    expect(filtered).toMatch(/^retry: 2000\nid: 1\nevent: ready\n/);
    expect(shown).toHaveLength(4);
  });

  test('its figures are the defaults', () => {
    const { streams, streamsPerAddress, waiters, waitersPerAddress, heartbeatMs, stalledMs } =
      defaultLiveLimits;
    const number = (value: number) => value.toLocaleString('en');
    for (const figure of [
      `${streamsPerAddress} streams and ${waitersPerAddress} waits for one address (IPv6: a /64), ${number(streams)} and ${number(waiters)} for a server`,
      `Every ${heartbeatMs / 1000} seconds a comment`,
      `read nothing for ${stalledMs / 1000} seconds`,
    ])
      expect(text.replaceAll('\n', ' ')).toContain(figure);
  });
});
