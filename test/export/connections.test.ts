// @module-tag slow: exports tens of thousands of rows to slow readers; export.test.ts is the quick pass
/** What an export holds: one connection of a few, for as long as somebody reads, and little memory. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { get, type IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { createGunzip } from 'node:zlib';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openStore } from '../../src/store/store.ts';
import { buildProgram, start } from '../cli/program.ts';
import { openTestStore } from '../database.ts';
import { expectError, type RunningServer, type SearchBody, serveStore } from '../http/running-server.ts';
import { makeManyMessages } from './many-messages.ts';

const isFull = process.env.LANESCAN_TEST_SCALE === 'full';
const ROWS = isFull ? 1_000_000 : 30_000;
/** For tests that read all of them. */
const LONG_MS = isFull ? 1_800_000 : 60_000;

let server: RunningServer;
let monitor: pg.Client;
beforeAll(async () => {
  const store = await openTestStore();
  await makeManyMessages(store, ROWS);
  server = await serveStore(store);
  monitor = new pg.Client({ connectionString: store.url });
  await monitor.connect();
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

async function untilExports(count: number): Promise<void> {
  const startedAt = performance.now();
  while ((await openExports()).length !== count) {
    if (performance.now() - startedAt > 60_000)
      throw new Error(`${(await openExports()).length} exports are open, not ${count}`);
    await delay(10);
  }
}

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

describe('connections', () => {
  test('a client that vanishes ends the cursor and frees the connection at once', async () => {
    for (let round = 0; round < 3; round++) {
      const response = await begun();
      await untilExports(1);
      response.destroy();
      await untilExports(0);
    }
  });

  test(
    'compressed it is the same file, and a client that vanishes frees the connection too',
    async () => {
      const packed = await begun(server.url, 'ndjson', { 'Accept-Encoding': 'gzip' });
      expect(packed.headers['content-encoding']).toBe('gzip');
      const unpacked = createHash('sha256');
      for await (const chunk of packed.pipe(createGunzip())) unpacked.update(chunk);
      const plain = createHash('sha256');
      for await (const chunk of await begun()) plain.update(chunk);
      expect(unpacked.digest('hex')).toBe(plain.digest('hex'));

      const response = await begun(server.url, 'ndjson', { 'Accept-Encoding': 'gzip' });
      await untilExports(1);
      response.destroy();
      await untilExports(0);
    },
    LONG_MS,
  );

  test('a fifth export is told to come back, quickly, and searches go on; a free place is taken again', async () => {
    const four = await Promise.all([begun(), begun(), begun(), begun()]);
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
    const locker = new pg.Client({ connectionString: server.store.url });
    await locker.connect();
    await locker.query('begin; lock table message in access exclusive mode');
    const request = get(`${server.url}/v2/messages/export`, { agent: false });
    request.on('error', () => undefined);
    await untilExports(1);
    request.destroy();
    await untilExports(0);
    await locker.end();
  });

  test.each([
    ['plain', {}],
    ['gzip', { 'Accept-Encoding': 'gzip' }],
  ])('a failure in the middle breaks the transfer (%s) and the service goes on', async (_how, headers) => {
    const response = await begun(server.url, 'ndjson', headers as Record<string, string>);
    await untilExports(1);
    for (const pid of await openExports()) await monitor.query('select pg_terminate_backend($1::int)', [pid]);
    let bytes = 0;
    const outcome = await new Promise<string>((resolve) => {
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
      });
      response.on('end', () => resolve('complete'));
      response.resume();
      response.on('error', (error) => resolve((error as NodeJS.ErrnoException).code ?? error.message));
    });
    expect(outcome).toBe('ECONNRESET');
    expect(bytes).toBeGreaterThan(0);
    expect((await server.ask('/v2/messages/export?sourceChainSelector=42')).status).toBe(200);
  });

  test('the server stops although somebody is still exporting', async () => {
    const store = await openStore({ place: { url: server.store.url } });
    const other = await serveStore({ ...store, url: server.store.url });
    const response = await begun(other.url);
    const broken = new Promise((resolve) => response.on('error', resolve));
    response.resume();
    response.pause();
    await other.close();
    response.resume();
    await broken;
  });
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
        process.stderr.write(
          `export: ${lines} rows, ${Math.round(bytes / 1e6)} MB; resident ${Math.round(before)} MB before, ` +
            `+${Math.round(stalled)} MB while two readers stall, peak ${Math.round(peak)} MB\n`,
        );
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
