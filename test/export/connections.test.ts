// @module-tag slow: exports tens of thousands of rows to slow readers; export.test.ts is the quick pass
/** What an export holds: one connection of a few, for as long as somebody reads, and little memory. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Message } from '../../src/domain/message.ts';
import { openStore } from '../../src/store/store.ts';
import {
  expectError,
  metricOf,
  type RunningServer,
  type SearchBody,
  serveStore,
} from '../api/running-server.ts';
import { buildProgram, start } from '../cli/program.ts';
import { openTestStore } from '../database.ts';
import { makeManyMessages } from '../fixtures/many-messages.ts';
import { connectTo } from '../postgres.ts';

const isFull = process.env.LANESCAN_TEST_SCALE === 'full';
const ROWS = isFull ? 1_000_000 : 30_000;
/** For tests that read all of them. */
const LONG_MS = isFull ? 1_800_000 : 60_000;

let server: RunningServer;
let monitor: pg.Client;
beforeAll(async () => {
  const store = await openTestStore();
  await makeManyMessages(store, ROWS);
  // Each client says its address itself.
  server = await serveStore(store, { trustProxy: 1 });
  monitor = await connectTo(store.url);
}, LONG_MS * 2);
afterAll(async () => {
  await monitor.end();
  await server.close();
});

/** The transactions of exports that the database has open. */
async function openExports(): Promise<number[]> {
  const { rows } = await monitor.query(
    `select pid from pg_stat_activity
     where datname = current_database() and query ~ '^(fetch|declare|begin read only)' and xact_start is not null`,
  );
  return rows.map(({ pid }) => pid);
}

const untilExports = (count: number) =>
  expect.poll(openExports, { interval: 10, timeout: 60_000 }).toHaveLength(count);

/** An export whose answer has begun and is not read any further. */
async function begun(
  url = server.url,
  format = 'ndjson',
  headers: Record<string, string> = {},
): Promise<IncomingMessage> {
  const request = get(`${url}/v2/messages/export?format=${format}`, { agent: false, headers });
  request.on('error', () => undefined);
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  response.on('error', () => undefined);
  response.pause();
  return response;
}

/** Reads what is left: the bytes, and the code of the error with which it ended, if it did. */
async function rest(response: IncomingMessage): Promise<{ bytes: Buffer; error: string | undefined }> {
  const chunks: Buffer[] = [];
  response.on('data', (chunk: Buffer) => chunks.push(chunk));
  const error = await new Promise<string | undefined>((resolve) => {
    response.on('end', () => resolve(undefined));
    response.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    response.resume();
  });
  return { bytes: Buffer.concat(chunks), error };
}

describe('connections', () => {
  test.each(['identity', 'gzip'])(
    'a client that vanishes ends the cursor and frees the connection at once (%s)',
    async (encoding) => {
      for (let round = 0; round < 3; round++) {
        const response = await begun(server.url, 'ndjson', { 'Accept-Encoding': encoding });
        await untilExports(1);
        response.destroy();
        await untilExports(0);
      }
    },
  );

  const from = (address: string) => ({ 'X-Forwarded-For': address });

  test('one address has two of the four at a time, and leaves the others to other addresses', async () => {
    const own = ['2001:db8::1', '2001:db8::2:1'];
    const first = await Promise.all(own.map((address) => begun(server.url, 'ndjson', from(address))));
    await untilExports(2);
    const third = await server.ask('/v2/messages/export', { headers: from('2001:db8::3') });
    expect(expectError(third, 429, 'TOO_MANY_CONNECTIONS').message).toContain(
      'Your address has 2 exports open',
    );
    const others = ['2001:db8:0:1::1', '192.0.2.1'];
    const second = await Promise.all(others.map((address) => begun(server.url, 'csv', from(address))));
    expect(second.map(({ statusCode }) => statusCode)).toEqual([200, 200]);
    first[0]?.destroy();
    await untilExports(3);
    const again = await begun(server.url, 'ndjson', from('2001:db8::3'));
    expect(again.statusCode).toBe(200);
    for (const response of [...first, ...second, again]) response.destroy();
    await untilExports(0);
  });

  test('a client that vanishes before the answers of pipelined exports leaves nothing behind', async () => {
    const socket = connect(server.port, '127.0.0.1');
    const requestOf = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
    socket.write(requestOf('/v2/messages/stream') + requestOf('/v2/messages/export').repeat(2));
    await untilExports(2);
    socket.destroy();
    await untilExports(0);
    const again = [await begun(), await begun()];
    expect(again.map(({ statusCode }) => statusCode)).toEqual([200, 200]);
    for (const response of again) response.destroy();
    await untilExports(0);
  });

  describe('a deadline', () => {
    /** A server whose exports are cut off soon. */
    async function serveImpatiently(): Promise<RunningServer> {
      const store = await openStore({ place: { url: server.store.url } });
      const other = await serveStore({ ...store, url: server.store.url }, { live: { exportMs: 500 } });
      onTestFinished(() => other.close());
      return other;
    }

    test('ends an export that takes longer, which its client can tell, and a second one continues it', async () => {
      const impatient = await serveImpatiently();
      const response = await begun(impatient.url);
      const [first] = (await once(response.resume(), 'data')) as [Buffer];
      response.pause();
      await untilExports(0);
      const { bytes, error } = await rest(response);
      expect(error).toBe('ECONNRESET');
      expect(await metricOf(impatient, 'lanescan_http_answers_cut_total{reason="deadline"}')).toBe('1');

      const lines = Buffer.concat([first, bytes]).toString('utf8').split('\n').slice(0, -1);
      const { sendTimestamp } = JSON.parse(lines.at(-1) ?? '') as Message;
      const sentBefore = new Date(Date.parse(sendTimestamp) + 1).toISOString();
      const second = await server.ask(`/v2/messages/export?format=ndjson&sentBefore=${sentBefore}`);
      const whole = await server.ask('/v2/messages/export?format=ndjson');
      const joined = new Set([...lines, ...second.text.split('\n').slice(0, -1)]);
      expect(lines.length).toBeLessThan(ROWS);
      expect([...joined].join('\n')).toBe(whole.text.trimEnd());
    });

    test('resets the connection, so that HTTP/1.0, which ends a file by closing it, shows it too', async () => {
      const { url } = await serveImpatiently();
      const options = ['--http1.0', '--silent', '--limit-rate', '100k', '--output', '/dev/null'];
      const curl = spawn('curl', [...options, `${url}/v2/messages/export?format=ndjson`]);
      // Failure in receiving; 0 would be a whole file.
      expect(await once(curl, 'exit')).toEqual([56, null]);
    });
  });

  test('a fifth export is told to come back, quickly, and searches go on; a free place is taken again', async () => {
    const two = ['192.0.2.1', '192.0.2.2'];
    const four = await Promise.all(
      [...two, ...two].map((address) => begun(server.url, 'ndjson', from(address))),
    );
    await untilExports(4);
    const fifth = await server.ask('/v2/messages/export?format=csv');
    expectError(fifth, 503, 'SERVICE_UNAVAILABLE');
    expect(Number(fifth.headers['retry-after'])).toBeGreaterThan(0);
    expect((await server.ask('/v2/messages')).status).toBe(200);
    expect((await server.ask('/v2/messages/export', { method: 'HEAD' })).status).toBe(200);

    four[0]?.destroy();
    await untilExports(3);
    const again = await begun();
    expect(again.statusCode).toBe(200);
    for (const response of [...four, again]) response.destroy();
    await untilExports(0);
  });

  test('a client that vanishes before the first row stops the query that looks for it', async () => {
    const locker = await connectTo(server.store.url);
    await locker.query('begin; lock table message in access exclusive mode');
    const request = get(`${server.url}/v2/messages/export`, { agent: false });
    request.on('error', () => undefined);
    await untilExports(1);
    request.destroy();
    await untilExports(0);
    await locker.end();
  });

  test.each(['identity', 'gzip'])(
    'a failure in the middle breaks the transfer (%s) and the service goes on',
    async (encoding) => {
      const response = await begun(server.url, 'ndjson', { 'Accept-Encoding': encoding });
      await untilExports(1);
      for (const pid of await openExports())
        await monitor.query('select pg_terminate_backend($1::int)', [pid]);
      const { bytes, error } = await rest(response);
      expect(error).toBe('ECONNRESET');
      expect(bytes.length).toBeGreaterThan(0);
      expect((await server.ask('/v2/messages/export?sourceChainSelector=42')).status).toBe(200);
    },
  );
});

describe('memory', () => {
  const residentMegabytes = (pid: number) =>
    Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1000;

  test.runIf(process.platform === 'linux')(
    `${ROWS.toLocaleString('en')} rows go to slow readers in constant memory, and equal a page walk`,
    { timeout: LONG_MS },
    async () => {
      await buildProgram();
      const serve = start(['serve', '--port', '0'], { env: { DATABASE_URL: server.store.url } });
      try {
        const [, url = ''] = await serve.untilSaid(/listens on (http:\/\/[\d.:]+)/);
        const { pid } = serve.child;
        // Warm, so that what grows afterwards is the export's.
        for (let count = 0; count < 20; count++) await (await fetch(`${url}/v2/messages?limit=1000`)).text();
        const before = residentMegabytes(pid);
        let peak = before;
        const sampler = setInterval(() => {
          peak = Math.max(peak, residentMegabytes(pid));
        }, 50);

        const slow = await Promise.all([begun(url), begun(url, 'csv')]);
        await delay(2_000);
        const stalled = residentMegabytes(pid) - before;
        slow[1]?.destroy();

        const exported = createHash('sha256');
        let lines = 0;
        let bytes = 0;
        for await (const chunk of slow[0] as AsyncIterable<Buffer>) {
          exported.update(chunk);
          bytes += chunk.length;
          for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, at + 1)) lines++;
        }
        clearInterval(sampler);

        const walked = createHash('sha256');
        for (let query: string | null = ''; query !== null; ) {
          const page = (await (await fetch(`${url}/v2/messages?limit=1000${query}`)).json()) as SearchBody;
          for (const message of page.data) walked.update(`${JSON.stringify(message)}\n`);
          query = page.pagination.cursor === null ? null : `&cursor=${page.pagination.cursor}`;
        }
        expect(lines).toBe(ROWS);
        expect(exported.digest('hex')).toBe(walked.digest('hex'));
        expect(bytes / lines).toBeGreaterThan(1_500);
        // Both together less than one of them is long: the rest of the machine's moods fits in there too.
        expect(stalled).toBeLessThan(bytes / 1e6);
        expect(peak).toBeLessThan(300);
      } finally {
        serve.child.kill('SIGTERM');
        await serve.outcome;
      }
    },
  );
});
