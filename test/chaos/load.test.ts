// @module-tag slow: more requests than the server can answer; kill.test.ts is the quick pass
/**
 * More than the machine can serve, and clients that mean no good: the excess is turned away, the others are served, the
 * memory stays what it was, and afterwards all is calm.
 *
 * Nothing here is a benchmark: figures are printed, and held only against the service's own time-outs.
 */
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { Agent, get, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { until } from '../api/live/live-server.ts';
import { serveStore } from '../api/running-server.ts';
import { buildProgram, type Running, start } from '../cli/program.ts';
import { openTestStore } from '../database.ts';
import { makeManyMessages } from '../fixtures/many-messages.ts';
import { connectTo } from '../postgres.ts';
import { freePort } from './deployment.ts';

const isFull = process.env.LANESCAN_TEST_SCALE === 'full';
const ROWS = 20_000;
/** Ten connections to the database and a hundred waiting for each are what a server takes at once. */
const TAKEN_AT_ONCE = 1_010;
const CROWD = 2 * TAKEN_AT_ONCE;
const LOAD_MS = isFull ? 30_000 : 4_000;
const MAX_CROWDS = 6;
const IDLE_CONNECTIONS = isFull ? 10_000 : 400;

let store: Store & { readonly url: string };
let server: Running;
let url: string;
let port: string;

beforeAll(async () => {
  await buildProgram();
  store = await openTestStore();
  await makeManyMessages(store, ROWS);
  port = await freePort();
  url = `http://127.0.0.1:${port}`;
  // Not a line a request: this process would have to keep them all.
  server = start(['serve', '--port', port, '--log-level', 'error'], { env: { DATABASE_URL: store.url } });
  await until(
    () =>
      fetch(`${url}/readyz`).then(
        ({ ok }) => ok,
        () => false,
      ),
    60_000,
  );
}, 300_000);
afterAll(async () => {
  server?.child.kill('SIGTERM');
  await server?.outcome;
  await store?.close();
});

const residentMegabytes = () =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.child.pid}/status`, 'utf8'))?.[1]) / 1000;
const openFiles = () => readdirSync(`/proc/${server.child.pid}/fd`).length;

async function metricOf(name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const line = text.split('\n').find((candidate) => candidate.startsWith(`${name} `));
  return Number(line?.slice(name.length + 1));
}

/** Different each time, so that nothing is answered from memory. */
let asked = 0;
const freshSearch = () => `/v2/messages?limit=20&sentAfter=${new Date(asked++).toISOString()}`;

interface Load {
  readonly statuses: Readonly<Record<string, number>>;
  /** Whether everybody who was turned away was told when to come back. */
  readonly hasRetryAfter: boolean;
  /** Seconds within which half of those who were served were, and 90 %, and 99 %, as the server measured them. */
  readonly within: readonly [number, number, number];
}

/** So many clients, each with a connection of its own that asks again when it is answered. */
async function load(clients: number, durationMs: number): Promise<Load> {
  const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
  const statuses: Record<string, number> = {};
  let hasRetryAfter = true;
  const before = await servedWithin();
  const endAt = performance.now() + durationMs;
  const client = async (_: unknown, index: number) => {
    // They come one after the other: this process has to cope too.
    await delay((durationMs / 4) * (index / clients));
    while (performance.now() < endAt) {
      let outcome: string;
      try {
        const request = get(`${url}${freshSearch()}`, { agent });
        const [answer] = (await once(request, 'response')) as [IncomingMessage];
        for await (const _chunk of answer);
        outcome = String(answer.statusCode);
        if (outcome !== '200') {
          hasRetryAfter &&= answer.headers['retry-after'] !== undefined;
          // They come back sooner than they were asked to, but not at once: nobody could serve that.
          await delay(200);
        }
      } catch (error) {
        outcome = String((error as NodeJS.ErrnoException).code);
      }
      statuses[outcome] = (statuses[outcome] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  agent.destroy();
  const after = await servedWithin();
  const counts = after.map(([seconds, count], index): [number, number] => [
    seconds,
    count - (before[index]?.[1] ?? 0),
  ]);
  const quantile = (part: number) =>
    counts.find(([, count]) => count >= part * (counts.at(-1)?.[1] ?? 0))?.[0] ?? Number.POSITIVE_INFINITY;
  return { statuses, hasRetryAfter, within: [quantile(0.5), quantile(0.9), quantile(0.99)] };
}

/** How many searches the server has answered within so many seconds. */
async function servedWithin(): Promise<readonly [seconds: number, count: number][]> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const bucket =
    /^lanescan_http_request_duration_seconds_bucket\{le="([\d.]+)",route="\/v2\/messages",method="GET",status="200"\} (\d+)/gm;
  return [...text.matchAll(bucket)].map(([, seconds, count]) => [Number(seconds), Number(count)]);
}

const inWords = ({ statuses, within: [half, most, nearlyAll] }: Load) =>
  `${JSON.stringify(statuses)}, served within ${half} s (p50), ${most} s (p90), ${nearlyAll} s (p99)`;

/**
 * Every search takes a tenth of a second from now on until the client ends, and no processor: ten connections serve a
 * hundred a second, on whatever machine.
 */
async function slowDatabase(): Promise<{ end(): Promise<void> }> {
  const client = await connectTo(store.url);
  await client.query(`alter table message rename to message_at_full_speed;
    create view message as select m.* from message_at_full_speed m, (select pg_sleep(0.1)) slowly`);
  return {
    async end() {
      await client.query('drop view message; alter table message_at_full_speed rename to message');
      await client.end();
    },
  };
}

test('of more requests than can be served the excess is turned away, and then it is calm at once', async () => {
  const client = await slowDatabase();
  onTestFinished(() => client.end());
  const calm = await load(4, 1_000);
  let peak = 0;
  const sampler = setInterval(() => {
    peak = Math.max(peak, residentMegabytes());
  }, 50);
  // A server keeps the memory that a crowd took, and a short crowd does not take all: what counts is that there is
  // an end to it.
  const calmMemory = residentMegabytes();
  const peaks: number[] = [];
  const crowds: Load[] = [];
  const isFlat = () => peaks.length > 2 && (peaks.at(-1) ?? 0) < 1.1 * Math.max(...peaks.slice(0, -1));
  while (!isFlat() && crowds.length < MAX_CROWDS) {
    peak = 0;
    crowds.push(await load(CROWD, LOAD_MS));
    peaks.push(peak);
  }
  clearInterval(sampler);
  const after = await load(4, 1_000);
  process.stderr.write(
    `load: 4 clients ${inWords(calm)}; ${crowds.map((crowd) => `${CROWD} clients ${inWords(crowd)}; `).join('')}` +
      `4 clients again ${inWords(after)}; resident ${[calmMemory, ...peaks].map(Math.round).join(', ')} MB before and ` +
      `at the peak of each, ${Math.round(residentMegabytes())} after\n`,
  );
  expect(Object.keys(calm.statuses)).toEqual(['200']);
  for (const crowd of crowds) {
    for (const outcome of Object.keys(crowd.statuses)) expect(['200', '503', '429']).toContain(outcome);
    expect(crowd.hasRetryAfter).toBe(true);
    expect(crowd.statuses['503']).toBeGreaterThan(0);
    expect(crowd.statuses['200']).toBeGreaterThan(0);
    // Two seconds for a connection, a tenth for the answer, and the rest for a machine that is busy with other tests.
    expect(crowd.within[2]).toBeLessThanOrEqual(15);
  }
  expect(Object.keys(after.statuses)).toEqual(['200']);
  expect(after.within[0]).toBeLessThanOrEqual(1);
  expect(isFlat()).toBe(true);
  expect(Math.max(...peaks) - calmMemory).toBeLessThan(300);
}, 300_000);

describe('connections that only stay', () => {
  test(`${IDLE_CONNECTIONS} idle ones cost little and nobody else anything`, {
    timeout: 120_000,
  }, async () => {
    const before = residentMegabytes();
    const filesBefore = openFiles();
    const sockets: Socket[] = [];
    onTestFinished(() => sockets.forEach((socket) => void socket.destroy()));
    let refused = 0;
    for (let count = 0; count < IDLE_CONNECTIONS; count += 100) {
      const batch = Array.from({ length: 100 }, async () => {
        const socket = connect(Number(port), '127.0.0.1');
        socket.on('error', () => undefined);
        sockets.push(socket);
        await once(socket, 'connect').catch(() => refused++);
      });
      await Promise.all(batch);
    }
    // Those that say nothing for 30 s are cut off, on a slow machine the first before the last has come.
    const open = () => sockets.filter(({ readyState }) => readyState === 'open').length;
    await until(() => openFiles() - filesBefore >= open(), 120_000);
    const held = open();
    const each = ((residentMegabytes() - before) / held) * 1_000;
    const beside = await load(4, 1_000);
    process.stderr.write(
      `${IDLE_CONNECTIONS} idle connections (${refused} refused, ${held} at once): ${Math.round(each)} kB each; beside them ${inWords(beside)}\n`,
    );
    expect(refused).toBe(0);
    expect(held).toBeGreaterThan(IDLE_CONNECTIONS / 4);
    expect(Object.keys(beside.statuses)).toEqual(['200']);
    expect(each).toBeLessThan(100);
    for (const socket of sockets) socket.destroy();
    await until(() => openFiles() <= filesBefore + 20, 120_000);
  });

  test('requests that come byte by byte are cut off, also those that never begin; others are answered meanwhile', async () => {
    const own = await serveStore({ ...store, close: async () => undefined }, { requestTimeoutMs: 600 });
    onTestFinished(() => own.close());
    const slow = Array.from({ length: 30 }, (_, index) => {
      const socket = connect(own.port, '127.0.0.1');
      const text = `GET /v2/messages HTTP/1.1\r\nHost: here\r\nX-Slow: ${'a'.repeat(10_000)}`;
      let at = 0;
      const writing = setInterval(() => index % 3 !== 0 && socket.write(text[at++] ?? 'a'), 20);
      socket.on('error', () => undefined).on('close', () => clearInterval(writing));
      return socket.resume();
    });
    const closed = Promise.all(slow.map((socket) => once(socket, 'close')));
    for (let i = 0; i < 10; i++) expect((await own.ask(freshSearch())).status).toBe(200);
    await closed;
    expect((await own.ask('/v2/messages')).status).toBe(200);
  });
});

describe('clients that vanish', () => {
  test('in the middle of exports and streams leave nothing behind', async () => {
    const filesBefore = openFiles();
    for (let round = 0; round < (isFull ? 50 : 3); round++) {
      const requests = Array.from({ length: 40 }, (_, index) => {
        const path = index % 10 === 0 ? '/v2/messages/export?format=ndjson' : '/v2/messages/stream?after=0';
        const request = get(`${url}${path}`, { agent: false });
        request
          .on('error', () => undefined)
          .on('response', (answer) => answer.on('error', () => undefined).pause());
        return request;
      });
      await delay(round * 50 + 20);
      for (const request of requests) request.destroy();
    }
    await until(async () => (await metricOf('lanescan_feed_followers')) === 0, 120_000);
    await until(async () => (await metricOf('lanescan_http_requests_in_flight')) === 1, 120_000);
    await until(
      async () => (await metricOf('lanescan_database_connections{pool="exporters",state="used"}')) === 0,
      30_000,
    );
    await until(() => openFiles() <= filesBefore + 20, 120_000);
    expect((await fetch(`${url}${freshSearch()}`)).status).toBe(200);
  });

  test('an export that nobody reads any more is ended, and its connection is free', async () => {
    const own = await serveStore(
      { ...store, close: async () => undefined },
      { backpressure: { stalledMs: 500 } },
    );
    onTestFinished(() => own.close());
    const exporting = () => {
      const { total, idle } = store.pools().find(({ pool }) => pool === 'exporters') ?? { total: 0, idle: 0 };
      return total - idle;
    };
    const request = get(`${own.url}/v2/messages/export?format=ndjson`, { agent: false });
    const [answer] = (await once(request, 'response')) as [IncomingMessage];
    const broken = new Promise<string>((resolve) => {
      answer.on('error', (error) => resolve((error as NodeJS.ErrnoException).code ?? error.message));
      answer.on('end', () => resolve('complete'));
    });
    answer.pause();
    await until(() => exporting() === 1);
    await until(() => exporting() === 0, 120_000);
    answer.resume();
    // What was cut off must not look whole.
    expect(await broken).toBe('ECONNRESET');
  });
});
