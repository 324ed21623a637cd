// @module-tag slow: holds connections that are not read; api/live/stream.test.ts is the quick pass
/** Clients that ask and do not read: what waits for them is bounded, they are cut off, and others do not notice. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { ServerOptions } from '../../../src/api/server/server.ts';
import { makeMessage } from '../../fixtures.ts';
import { until, untilFollowing } from '../live/live-server.ts';
import {
  expectError,
  metricOf,
  type RunningServer,
  type SearchBody,
  serverForAll,
  serveStore,
} from '../running-server.ts';

const LONG = '/v2/messages?limit=1000';
const EXPORT = '/v2/messages/export?format=ndjson';
const MEGABYTE = 1_000_000;

const data = `0x${'5a'.repeat(30_000)}`;
const whole = serverForAll(Array.from({ length: 150 }, (_, number) => makeMessage({ number, data })));
/** Bytes of the long page. */
let pageBytes: number;
beforeAll(async () => {
  pageBytes = (await whole.ask(LONG)).bytes.length;
  expect(pageBytes).toBeGreaterThan(7 * MEGABYTE);
});

/** Servers over the one store; closed with the test. */
async function serve(options: Partial<ServerOptions> = {}): Promise<RunningServer> {
  const server = await serveStore({ ...whole.store, close: async () => undefined }, options);
  onTestFinished(() => server.close());
  return server;
}

/** Sends requests and reads nothing until somebody resumes the socket. */
async function ask(
  { port }: RunningServer,
  {
    path = LONG,
    headers = {},
    times = 1,
  }: { path?: string; headers?: Record<string, string>; times?: number } = {},
) {
  const socket = connect(port, '127.0.0.1');
  let received = 0;
  let isClosed = false;
  // The server may reset it at any moment.
  socket.on('error', () => undefined);
  socket.on('close', () => {
    isClosed = true;
  });
  socket.on('data', (chunk) => {
    received += chunk.length;
  });
  socket.pause();
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  const lines = Object.entries({ Host: 'test', ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`.repeat(times));
  return { socket, /** Bytes that were read. */ received: () => received, isClosed: () => isClosed };
}

interface RequestLine {
  readonly url: string;
  readonly status: number;
  readonly aborted?: string;
  readonly sentBytes?: number;
}
const requestLines = ({ log }: RunningServer, url = LONG): readonly RequestLine[] =>
  log.map((line) => JSON.parse(line) as RequestLine & { msg: string }).filter((line) => line.url === url);
const waitingBytes = async (server: RunningServer) =>
  Number(await metricOf(server, 'lanescan_http_waiting_bytes'));
const cutBy = async (server: RunningServer, reason: string) =>
  Number(await metricOf(server, `lanescan_http_answers_cut_total{reason="${reason}"}`));

describe('a client that does not read its page', () => {
  for (const [what, path, times] of [
    ['one long answer', LONG, 1],
    ['many short answers on one connection', '/v2/messages?limit=1', 150],
    ['an export', EXPORT, 1],
  ] as const) {
    test(`is cut off after the time without progress, and the log says so: ${what}`, async () => {
      const server = await serve({ backpressure: { stalledMs: 1_000 }, connections: { pipelined: 200 } });
      const reader = await ask(server, { path, times, headers: { 'Accept-Encoding': 'identity' } });
      await until(() => requestLines(server, path).some(({ aborted }) => aborted === 'stalled'));
      const line = requestLines(server, path).find(({ aborted }) => aborted) as RequestLine;
      expect(line.status).toBe(200);
      expect(line.sentBytes).toBeGreaterThanOrEqual(0);
      expect(line.sentBytes).toBeLessThan(pageBytes);
      await until(async () => (await waitingBytes(server)) === 0);
      expect(await cutBy(server, 'stalled')).toBeGreaterThan(0);
      await until(async () => !(await isExporting(server)));
      // What was on its way arrives, and no more.
      reader.socket.resume();
      await until(reader.isClosed);
      expect(reader.received()).toBeLessThan(pageBytes);
    });
  }

  test('gets all of it where it reads slowly but steadily, for longer than that time', async () => {
    const stalledMs = 2_000;
    const server = await serve({ backpressure: { stalledMs } });
    const reader = await ask(server);
    const startedAt = performance.now();
    for (let answers = 1; reader.received() < answers * pageBytes; ) {
      const before = reader.received();
      reader.socket.resume();
      await until(() => reader.received() > before);
      reader.socket.pause();
      expect(reader.isClosed()).toBe(false);
      await delay(100);
      const isSoon = performance.now() - startedAt < 1.5 * stalledMs;
      if (reader.received() >= answers * pageBytes && isSoon) {
        answers++;
        reader.socket.write(`GET ${LONG} HTTP/1.1\r\nHost: test\r\n\r\n`);
      }
    }
    expect(performance.now() - startedAt).toBeGreaterThan(stalledMs);
    expect(requestLines(server).some(({ aborted }) => aborted)).toBe(false);
  });
});

describe('many clients that do not read', () => {
  test('take no more memory than all may, and others are answered meanwhile', async () => {
    const limit = 30 * MEGABYTE;
    const server = await serve({ backpressure: { bytes: limit, stalledMs: 5_000 } });
    const readers = await Promise.all(Array.from({ length: 30 }, () => ask(server)));
    const ended = () => requestLines(server).length;
    await until(async () => {
      expect(await waitingBytes(server)).toBeLessThanOrEqual(limit);
      const short = await server.ask('/v2/messages?limit=1&view=summary');
      expect(short.status).toBe(200);
      return ended() === readers.length;
    });
    const lines = requestLines(server);
    // Rejected while those before them might still read, or cut off because they did not.
    for (const { status, aborted } of lines) expect([200, 503]).toContain(status ?? aborted);
    expect(lines.filter(({ status }) => status === 503).length).toBeGreaterThan(0);
    expect(lines.filter(({ aborted }) => aborted).length).toBeGreaterThanOrEqual(3);
    expect(await waitingBytes(server)).toBe(0);
    expect((await server.ask(LONG)).json<SearchBody>().data.length).toBeGreaterThan(100);
  });

  test('make room for somebody who reads, those first who have waited longest', async () => {
    const server = await serve({ backpressure: { bytes: 2.5 * pageBytes, stalledMs: 600_000 } });
    await ask(server);
    await ask(server);
    await until(async () => (await waitingBytes(server)) > 1.9 * pageBytes);
    const rejected = await server.ask(LONG);
    if (rejected.status !== 200) {
      expectError(rejected, 503, 'SERVICE_UNAVAILABLE');
      expect(rejected.headers['retry-after']).toMatch(/^\d+$/);
      expect(rejected.headers).not.toHaveProperty('etag');
      expect(rejected.headers).not.toHaveProperty('link');
    }
    await until(async () => (await server.ask(LONG)).status === 200);
    expect(requestLines(server).filter(({ aborted }) => aborted === 'memory').length).toBeGreaterThan(0);
  });

  test('of one network are rejected more, while another network is not', async () => {
    const server = await serve({
      trustProxy: 1,
      backpressure: { bytesPerAddress: 2.5 * pageBytes, stalledMs: 600_000 },
    });
    const from = (address: string) => ({ headers: { 'X-Forwarded-For': address } });
    await ask(server, from('2001:db8:1:1::1'));
    await ask(server, from('2001:db8:1:1::2'));
    await until(async () => (await waitingBytes(server)) > 1.9 * pageBytes);
    const rejected = await server.ask(LONG, from('2001:db8:1:1:ffff::3'));
    expect(expectError(rejected, 429, 'TOO_MANY_CONNECTIONS').message).toContain('have not been read');
    expect(rejected.headers['retry-after']).toMatch(/^\d+$/);
    expect((await server.ask('/v2/messages?limit=1&view=summary', from('2001:db8:1:1::1'))).status).toBe(200);
    expect((await server.ask(LONG, from('2001:db8:1:2::1'))).status).toBe(200);
  });

  test('of one network have one share of streams and waiting requests', async () => {
    const server = await serve({ trustProxy: 1, live: { streamsPerAddress: 2, waitersPerAddress: 2 } });
    const from = (address: string) => ({ headers: { 'X-Forwarded-For': address } });
    const [stream, waiting] = ['/v2/messages/stream', `/v2/messages/0x${'0'.repeat(64)}?waitFor=SUCCESS`];
    for (const [index, path] of [stream, waiting].entries()) {
      for (const end of ['1', '2']) await ask(server, { path, ...from(`2001:db8:1:1::${end}`) });
      await untilFollowing(server, 2 * index + 2);
      const third = await server.ask(path, from('2001:db8:1:1:9::3'));
      expectError(third, 429, 'TOO_MANY_CONNECTIONS');
    }
    const elsewhere = { ...from('2001:db8:1:2::3'), method: 'HEAD' };
    expect((await server.ask(stream, elsewhere)).status).toBe(200);
  });
});

describe('connections', () => {
  const rateLimit = { perSecond: 100_000, burst: 100_000, loopback: true };

  test.each<[whose: string, Partial<ServerOptions>]>([
    ['of one address', { rateLimit, connections: { connectionsPerAddress: 2 } }],
    ['in all', { connections: { connections: 2 } }],
  ])('%s are bounded, and another finds room when one is closed', async (whose, options) => {
    const server = await serve(options);
    const path = '/v2/messages/stream';
    const [first] = [await ask(server, { path }), await ask(server, { path })];
    const third = await ask(server, { path });
    third.socket.resume();
    await until(third.isClosed);
    expect(third.received()).toBe(0);
    first.socket.destroy();
    await until(async () => (await server.ask('/healthz').catch(() => undefined))?.status === 200);
    const rejections = Number(await metricOf(server, 'lanescan_http_refusals_total{reason="connections"}'));
    if (whose === 'of one address') expect(rejections).toBeGreaterThan(0);
  });

  test('with more pipelined requests than one may have are cut off, and leave nothing behind', async () => {
    const server = await serve({ connections: { pipelined: 8 } });
    const reader = await ask(server, { path: '/v2/messages?limit=20', times: 40 });
    reader.socket.resume();
    await until(reader.isClosed);
    await until(async () => (await metricOf(server, 'lanescan_http_requests_in_flight')) === '1');
    expect(await waitingBytes(server)).toBe(0);
  });

  test('that end while pipelined answers wait leave nothing behind', async () => {
    const server = await serve();
    const reader = await ask(server, { times: 5 });
    await until(async () => (await waitingBytes(server)) > 3 * pageBytes);
    reader.socket.destroy();
    await until(async () => (await metricOf(server, 'lanescan_http_requests_in_flight')) === '1');
    expect(await waitingBytes(server)).toBe(0);
    const lines = requestLines(server);
    expect(lines).toHaveLength(5);
    for (const { aborted, status } of lines) expect(aborted === 'client' || status === 499).toBe(true);
  });
});

describe('a server that stops', () => {
  test('sends what is in flight to its end', async () => {
    const server = await serve();
    const reader = await ask(server);
    const exported = await ask(server, { path: EXPORT });
    await until(async () => (await waitingBytes(server)) > 0 && (await isExporting(server)));
    const closed = server.close();
    // Whatever the server does at once, it has done by now.
    await delay(500);
    reader.socket.resume();
    exported.socket.resume();
    await closed;
    await until(() => reader.isClosed() && exported.isClosed());
    expect(reader.received()).toBeGreaterThan(pageBytes);
    expect(exported.received()).toBeGreaterThan(9 * MEGABYTE);
    for (const url of [LONG, EXPORT]) {
      const line = requestLines(server, url).at(-1);
      expect({ status: line?.status, aborted: line?.aborted }).toEqual({ status: 200, aborted: undefined });
    }
  });

  test('does not wait longer than it says for who does not read, and says who was cut off', async () => {
    const server = await serve({ connections: { finishMs: 1_000 } });
    await ask(server);
    await until(async () => (await waitingBytes(server)) > 0);
    await server.close();
    await until(() => requestLines(server).length > 0);
    const line = requestLines(server).at(-1) as RequestLine;
    expect({ status: line.status, aborted: line.aborted }).toEqual({ status: 200, aborted: 'stopping' });
    expect(line.sentBytes).toBeLessThan(pageBytes);
    expect(server.log.some((text) => text.includes('are cut off'))).toBe(true);
  });

  test('closes connections that are idle, and those that were never used', async () => {
    const server = await serve();
    const unused = connect(server.port, '127.0.0.1');
    const idle = await ask(server, { path: '/healthz' });
    idle.socket.resume();
    unused.resume();
    await until(() => idle.received() > 0);
    await Promise.all([server.close(), once(unused, 'close')]);
    await until(idle.isClosed);
  });
});

async function isExporting(server: RunningServer): Promise<boolean> {
  const used = await metricOf(server, 'lanescan_database_connections{pool="exporters",state="used"}');
  return Number(used) > 0;
}
