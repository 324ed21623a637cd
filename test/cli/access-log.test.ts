/** The access log can be switched off without losing warnings. */
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { provideTestDatabase } from '../database.ts';
import { buildProgram, lanescan, start } from './program.ts';

const database = provideTestDatabase();
beforeAll(buildProgram);

/** The log of a server that answered one request, which it had to warn of. */
async function logOf(env: Readonly<Record<string, string>>): Promise<readonly Record<string, unknown>[]> {
  const server = start(['serve', '--port', '0'], { env: { DATABASE_URL: database.url, ...env } });
  onTestFinished(() => void server.child.kill('SIGKILL'));
  const url = await server.untilListening();
  await (await fetch(`${url}/v2/messages`, { headers: { 'X-Forwarded-For': '192.0.2.1' } })).text();
  server.child.kill('SIGTERM');
  const { code, stderr } = await server.outcome;
  expect(code).toBe(0);
  return stderr
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
}

const component = 'http';
const request = expect.objectContaining({ component, msg: 'request', url: '/v2/messages', status: 200 });
const ignored = expect.stringContaining('X-Forwarded-For is ignored');
const warning = expect.objectContaining({ component, level: 40, msg: ignored });

test('every request has a line, unless somebody says otherwise', async () => {
  const lines = await logOf({});
  expect(lines).toContainEqual(request);
  expect(lines).toContainEqual(warning);
});

test('without the access log, warnings and what happens to the server are logged all the same', {
  tags: 'slow',
}, async () => {
  const lines = await logOf({ LANESCAN_ACCESS_LOG: 'false' });
  expect(lines).not.toContainEqual(request);
  expect(lines).toContainEqual(warning);
  expect(lines).toContainEqual(expect.objectContaining({ msg: expect.stringContaining('listens on') }));
});

test('it takes true or false', async () => {
  const { code, stderr } = await lanescan(['search'], { env: { LANESCAN_ACCESS_LOG: 'perhaps' } });
  expect(code).toBe(1);
  expect(stderr).toContain('LANESCAN_ACCESS_LOG is "perhaps". It takes true or false');
});
