// @module-tag slow: starts many servers of several processes each
/** `lanescan serve --processes`: several processes on one port, which clients take for one. */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { costlyAllowance } from '../../src/api/server/rate-limit.ts';
import { provideTestDatabase } from '../database.ts';
import { buildProgram, configFile, type Running, runProgram, start } from './program.ts';

const PROCESSES = 3;

const database = provideTestDatabase();
beforeAll(buildProgram);

async function serve(config = ''): Promise<{ server: Running; url: string }> {
  const args = ['serve', '--port', '0', '--processes', String(PROCESSES), '--config', configFile(config)];
  const server = start(args, { env: { DATABASE_URL: database.url } });
  onTestFinished(() => void server.child.kill('SIGKILL'));
  return { server, url: await server.untilListening() };
}

/** On a connection of its own, so that the next process gets it. */
function ask(url: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    get(url, { agent: new Agent({ keepAlive: false }) }, async (answer: IncomingMessage) => {
      let text = '';
      for await (const chunk of answer.setEncoding('utf8')) text += chunk;
      resolve({ status: answer.statusCode ?? 0, text });
    }).on('error', reject);
  });
}

function childrenOf({ child }: Running): readonly number[] {
  const { stdout } = spawnSync('pgrep', ['-P', String(child.pid)], { encoding: 'utf8' });
  return stdout.split('\n').filter(Boolean).map(Number);
}

const isAlive = (pid: number) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};

async function searchWell(url: string, times: number): Promise<void> {
  for (let i = 0; i < times; i++) expect((await ask(`${url}/v2/messages`)).status).toBe(200);
}
const stop = async ({ child, outcome }: Running) => {
  child.kill('SIGTERM');
  const { code, stderr } = await outcome;
  expect(code, stderr).toBe(0);
  return stderr;
};
const readyIn = (server: Running) => () => server.said().stderr.split('is ready').length - 1;

async function answered(url: string): Promise<number> {
  const { text } = await ask(`${url}/metrics`);
  const line = /^lanescan_http_request_duration_seconds_count\{route="\/v2\/messages".*\} (\d+)$/m.exec(text);
  return Number(line?.[1] ?? 0);
}

test('all of them answer, the metrics of one are those of all, and all stop in good order', async () => {
  const { server, url } = await serve();
  const children = childrenOf(server);
  expect(children).toHaveLength(PROCESSES);
  await searchWell(url, 4 * PROCESSES);
  // A request is counted when its connection has taken the answer.
  await expect.poll(() => answered(url)).toBe(4 * PROCESSES);
  const { text } = await ask(`${url}/metrics`);
  expect(text).toMatch(/^lanescan_database_up 1$/m);
  expect(text).toMatch(/^lanescan_build_info\{.*\} 1$/m);
  // Every process has a connection to the database by now, if every process has answered.
  const idle = Number(
    /^lanescan_database_connections\{pool="readers",state="idle"\} (\d+)$/m.exec(text)?.[1] ?? 0,
  );
  expect(idle).toBeGreaterThanOrEqual(PROCESSES);

  const stderr = await stop(server);
  expect(children.filter(isAlive)).toEqual([]);
  const listening = stderr.split('\n').filter((line) => line.includes('listens on'));
  expect(listening).toEqual([expect.stringContaining(`${PROCESSES} worker processes`)]);
});

test('one that is killed is replaced while the others answer; no counter goes back, nor where one is silent', async () => {
  const { server, url } = await serve();
  await searchWell(url, 4 * PROCESSES);
  await expect.poll(() => answered(url)).toBe(4 * PROCESSES);
  const [silent = 0, victim = 0] = childrenOf(server);
  process.kill(victim, 'SIGKILL');
  await server.untilSaid(/was ended by SIGKILL; it is restarted/);
  expect(await answered(url)).toBe(4 * PROCESSES);
  await searchWell(url, 2 * PROCESSES);
  const asked = 6 * PROCESSES;
  await expect.poll(readyIn(server)).toBe(PROCESSES + 1);
  expect(childrenOf(server)).toHaveLength(PROCESSES);
  expect(childrenOf(server)).not.toContain(victim);
  await expect.poll(() => answered(url)).toBe(asked);

  process.kill(silent, 'SIGSTOP');
  onTestFinished(() => void (isAlive(silent) && process.kill(silent, 'SIGCONT')));
  // Connections that go to the stopped one have to wait.
  expect(await Promise.any(Array.from({ length: PROCESSES }, () => answered(url)))).toBe(asked);
  process.kill(silent, 'SIGCONT');
  await searchWell(url, PROCESSES);
  await expect.poll(() => answered(url)).toBe(asked + PROCESSES);
  await stop(server);
});

test('without the one that started them none goes on', async () => {
  const { server, url } = await serve();
  const children = childrenOf(server);
  server.child.kill('SIGKILL');
  await expect.poll(() => children.filter(isAlive)).toEqual([]);
  await expect(ask(url)).rejects.toThrow();
});

test('what a client takes from one it has taken from all', async () => {
  const burst = 30;
  const { server, url } = await serve(`rateLimit: { perSecond: 0.01, burst: ${burst}, loopback: true }\n`);
  let allowed = 0;
  // One in turn for each process, and time enough for it to tell the others: each alone would allow a whole burst.
  for (let i = 0; i < 2 * burst; i++) {
    const { status } = await ask(`${url}/v2/messages`);
    expect([200, 429]).toContain(status);
    if (status === 200) allowed++;
    await delay(120);
  }
  // What is taken within a moment on several counts late, and the moment is longer on a busy machine.
  expect(allowed).toBeGreaterThanOrEqual(burst);
  expect(allowed).toBeLessThan(1.5 * burst);
  await stop(server);
});

test('the rate limit of diagnoses holds across processes', async () => {
  const { url } = await serve('rateLimit: { perSecond: 10000, burst: 10000, loopback: true }\n');
  const path = `/v2/messages/0x${'ab'.repeat(32)}/diagnosis`;
  const { burst, perSecond } = costlyAllowance;
  const beganAt = performance.now();
  let allowed = 0;
  for (let i = 0; i < PROCESSES * burst; i++) {
    const { status } = await ask(`${url}${path}`);
    expect([404, 429]).toContain(status);
    if (status === 404) allowed++;
  }
  const refilled = Math.ceil(((performance.now() - beganAt) / 1_000) * perSecond);
  expect(allowed).toBeGreaterThanOrEqual(burst);
  // Requests can overtake the messages about those before. Each process alone would allow a whole burst.
  expect(allowed).toBeLessThan(1.5 * burst + refilled);
});

test('a port that is taken is told once', async () => {
  const other = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void other.close());
  await once(other, 'listening');
  const { port } = other.address() as { port: number };
  const args = ['serve', '--port', String(port), '--processes', '2', '--log-level', 'error'];
  const stderr = `lanescan: Port ${port} on 127.0.0.1 is taken by another program. Stop that program, or choose another port with --port.\n`;
  const outcome = await runProgram(args, { env: { DATABASE_URL: database.url } });
  expect(outcome).toEqual({ code: 1, stdout: '', stderr });
});

test.each(['0', '65', '1.5', 'many'])(
  '--processes %s is rejected, with the numbers that it takes',
  async (count) => {
    const { code, stderr } = await runProgram(['serve', '--processes', count]);
    expect(code).toBe(2);
    const told = count === 'many' ? '"many"' : count;
    expect(stderr).toContain(`--processes is ${told}. It takes a whole number from 1 to 64`);
  },
);
