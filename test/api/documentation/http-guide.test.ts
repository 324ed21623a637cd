/** docs/api/http.md: its commands work as they stand. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { makeMessage } from '../../fixtures.ts';
import { serverForAll } from '../running-server.ts';

const guide = readFileSync(new URL('../../../docs/api/http.md', import.meta.url), 'utf8');
const blocks = [...guide.matchAll(/```sh\n(.*?)```/gs)].map(([, commands = '']) => commands);

const server = serverForAll(
  Array.from({ length: 30 }, (_, number) => makeMessage({ number, status: 'SUCCESS' })),
);

async function run(block: string | undefined): Promise<string> {
  const commands = String(block).replaceAll('http://localhost:8080', server.url);
  const { stdout, stderr } = await promisify(execFile)('bash', [
    '--norc',
    '-euo',
    'pipefail',
    '-c',
    commands,
  ]);
  expect(stderr).toBe('');
  return stdout;
}

test('asking again for what has not changed is a 304', async () => {
  expect(await run(blocks[0])).toBe('304\n');
});

test('compressed answers are read with the usual tools', async () => {
  const output = await run(blocks[1]?.replace(' | head -c 200', ''));
  expect(output).toMatch(/^\{"data":\[\{.*"hasNextPage":false.*\}30\n$/s);
});

test('the next page is in Link', async () => {
  expect(await run(blocks[2])).toMatch(/^link: <\?cursor=[\w-]+&limit=1&view=summary>; rel="next"\r\n$/i);
});

test('a key that nobody knows is no error', async () => {
  expect(await run(blocks[3])).toBe('HTTP/1.1 200 OK\r\n');
});

test('a preflight is answered', async () => {
  expect(await run(blocks[4]?.replace('| head -1', ''))).toMatch(/^HTTP\/1\.1 204 No Content\r\n/);
  expect(blocks).toHaveLength(5);
});
