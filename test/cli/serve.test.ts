/** `lanescan serve` as a process: its log, its access log, its end, and a port that is taken. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { provideTestDatabase } from '../database.ts';
import { connectTo } from '../postgres.ts';
import { buildProgram, hasTerminal, lanescan, runProgram, shell, start, withoutColours } from './program.ts';

const database = provideTestDatabase();
beforeAll(buildProgram);

const logLinesOf = (stderr: string) =>
  stderr
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
const serve = () => start(['serve', '--port', '0'], { env: { DATABASE_URL: database.url } });

test('logs JSON lines, one a request with its id, and stops at SIGTERM', async () => {
  const server = serve();
  const url = await server.untilListening();
  const answers = await Promise.all(
    ['/v2/messages', '/nowhere', '/healthz'].map((path) => fetch(`${url}${path}`)),
  );
  expect(answers.map(({ status }) => status)).toEqual([200, 404, 200]);
  server.child.kill('SIGTERM');
  const { code, stdout, stderr } = await server.outcome;
  expect({ code, stdout }).toEqual({ code: 0, stdout: '' });
  const lines = logLinesOf(stderr);
  for (const line of lines) expect(line.time).toMatch(/^\d{4}-\d\d-\d\dT/);
  const requests = lines.filter(({ msg }) => msg === 'request');
  expect(requests).toHaveLength(3);
  for (const answer of answers) {
    const { pathname } = new URL(answer.url);
    expect(requests).toContainEqual(
      expect.objectContaining({
        reqId: answer.headers.get('x-request-id'),
        method: 'GET',
        url: pathname,
        status: answer.status,
      }),
    );
  }
});

test('a request that is in flight at SIGTERM is answered before the end', async () => {
  const server = serve();
  const url = await server.untilListening();
  const blocker = await connectTo(database.url);
  await blocker.query('begin; lock table message in access exclusive mode');
  const inFlight = fetch(`${url}/v2/messages`);
  for (;;) {
    const { rows } = await blocker.query('select from pg_locks where not granted');
    if (rows.length > 0) break;
    await delay(20);
  }
  server.child.kill('SIGTERM');
  await server.untilSaid(/finishing the requests in flight/);
  await delay(200);
  expect(server.child.exitCode).toBeNull();
  await expect(fetch(`${url}/healthz`)).rejects.toThrow();
  await blocker.query('commit');
  await blocker.end();
  const answer = await inFlight;
  expect(answer.status).toBe(200);
  expect(await answer.json()).toMatchObject({ data: [] });
  expect((await server.outcome).code).toBe(0);
});

test('a port that is taken is told in one line', { tags: 'slow' }, async () => {
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { port } = other.address() as { port: number };
  const { code, stdout, stderr } = await runProgram(['serve', '--port', String(port)], {
    env: { DATABASE_URL: database.url },
  });
  other.close();
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
  expect(stderr).toBe(
    `lanescan: Port ${port} on 127.0.0.1 is taken by another program. Stop that program, or choose another port with --port.\n`,
  );
});

test.runIf(hasTerminal)('on a terminal the log is for people', { tags: 'slow' }, () => {
  const { stdout } = shell(
    `script -qec 'timeout -s INT 3 node ${process.cwd()}/bin/lanescan serve --port 0' /dev/null < /dev/null`,
    { env: { DATABASE_URL: database.url } },
  );
  expect(withoutColours(stdout)).toMatch(/\[\d\d:\d\d:\d\d\] INFO: Lanescan \S+ listens on http/);
});

/** The log of a server that answered one request, which it had to warn of. */
async function logOf(env: Readonly<Record<string, string>>): Promise<readonly Record<string, unknown>[]> {
  const server = start(['serve', '--port', '0'], { env: { DATABASE_URL: database.url, ...env } });
  onTestFinished(() => void server.child.kill('SIGKILL'));
  const url = await server.untilListening();
  await (await fetch(`${url}/v2/messages`, { headers: { 'X-Forwarded-For': '192.0.2.1' } })).text();
  server.child.kill('SIGTERM');
  const { code, stderr } = await server.outcome;
  expect(code).toBe(0);
  return logLinesOf(stderr);
}

const component = 'http';
const ignored = expect.stringContaining('X-Forwarded-For is ignored');
const warning = expect.objectContaining({ component, level: 40, msg: ignored });

test('without the access log, warnings and what happens to the server are logged all the same', {
  tags: 'slow',
}, async () => {
  const lines = await logOf({ LANESCAN_ACCESS_LOG: 'false' });
  expect(lines.some(({ msg }) => msg === 'request')).toBe(false);
  expect(lines).toContainEqual(warning);
  expect(lines).toContainEqual(expect.objectContaining({ msg: expect.stringContaining('listens on') }));
});

test('the access log is true or false', async () => {
  const { code, stderr } = await lanescan(['search'], { env: { LANESCAN_ACCESS_LOG: 'perhaps' } });
  expect(code).toBe(1);
  expect(stderr).toContain('LANESCAN_ACCESS_LOG is "perhaps". It takes true or false');
});
