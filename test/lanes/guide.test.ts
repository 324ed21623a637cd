/** The guide's commands do what the guide says. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { serverForAll } from '../api/running-server.ts';
import { lanescan } from '../cli/program.ts';
import { makeMessage } from '../fixtures.ts';

const guide = readFileSync(new URL('../../docs/api/lanes.md', import.meta.url), 'utf8');
const commands = [...guide.matchAll(/^```sh\n(.*?)^```/gms)].flatMap(([, block = '']) =>
  block.trim().split('\n'),
);

const server = serverForAll(
  Array.from({ length: 10 }, (_, i) => makeMessage({ number: i + 1, status: 'SUCCESS' })),
);

async function outputOf(command: string): Promise<string> {
  if (command.startsWith('lanescan ')) {
    const outcome = await lanescan(command.split(' ').slice(1), { env: { DATABASE_URL: server.store.url } });
    expect(outcome).toMatchObject({ code: 0 });
    return outcome.stdout;
  }
  expect(command).toMatch(/^curl -s /);
  const asked = command
    .replace('http://localhost:8080', server.url)
    .replace('curl -s', 'curl -sS --fail-with-body');
  return (await promisify(execFile)('bash', ['-c', asked])).stdout;
}

test.each(commands)('%s', async (command) => {
  const output = await outputOf(command);
  if (command.startsWith('curl') || command.endsWith('--json'))
    expect(JSON.parse(output)).toBeTypeOf('object');
  else expect(output).toContain('Ethereum Sepolia → ');
});

test('the guide has commands to run', () => {
  expect(commands.length).toBeGreaterThanOrEqual(8);
});
