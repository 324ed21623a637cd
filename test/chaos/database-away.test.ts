// @module-tag slow: stops and starts databases; api/server/availability.test.ts is the quick pass
/**
 * The database restarts, is full, is slow, or is another one: requests are answered with 503 in good time, none hangs,
 * and the service comes back by itself.
 */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { describe, expect, onTestFinished, test } from 'vitest';
import { listenForChanges } from '../../src/store/query/change-listener.ts';
import { openStore } from '../../src/store/store.ts';
import { numbersUpTo, readStream, until } from '../api/live/live-server.ts';
import {
  type Answer,
  expectError,
  type RunningServer,
  type SearchBody,
  serveStore,
} from '../api/running-server.ts';
import { createTestDatabase } from '../database.ts';
import { makeMessage, makeSnapshot } from '../fixtures.ts';
import { connectForTest } from '../postgres.ts';
import { openAddress, type SystemServer, startSystemServer, systemPostgres } from './system-postgres.ts';

const isFull = process.env.LANESCAN_TEST_SCALE === 'full';
/** Beyond this a request hangs: no time-out of the service is longer. */
const HANGS_MS = 60_000;

/** Asks again and again, as clients do. What is not 200 must be a whole 503. */
function watch(server: RunningServer) {
  const statuses = new Map<number, number>();
  const refusals: Answer[] = [];
  let slowest = 0;
  let isOver = false;
  const asking = Array.from({ length: 3 }, async () => {
    while (!isOver) {
      const startedAt = performance.now();
      const answer = await server.ask(freshSearch());
      slowest = Math.max(slowest, performance.now() - startedAt);
      statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
      if (answer.status === 200) continue;
      refusals.push(answer);
      await delay(5);
    }
  });
  return {
    /** How often each status was answered. */
    statuses,
    count: (status: number) => statuses.get(status) ?? 0,
    get slowest() {
      return slowest;
    },
    async stop() {
      isOver = true;
      await Promise.all(asking);
      for (const answer of refusals) {
        expectError(answer, 503, 'SERVICE_UNAVAILABLE');
        expect(answer.headers['retry-after']).toMatch(/^[1-9]\d*$/);
      }
    },
  };
}

/** Different each time, so that nothing is answered from memory. */
let asked = 0;
const freshSearch = () => `/v2/messages?limit=5&sentAfter=${new Date(asked++).toISOString()}`;

async function startOn(url: string): Promise<RunningServer> {
  const store = await openStore({ place: { url }, content: 'real' });
  await store.apply([makeSnapshot(makeMessage())]);
  const server = await serveStore({ ...store, url });
  onTestFinished(() => server.close());
  return server;
}

async function untilBack(server: RunningServer): Promise<void> {
  await until(async () => (await server.ask(freshSearch())).status === 200);
}

describe.skipIf(systemPostgres === undefined)('a server (needs PostgreSQL of the operating system)', () => {
  async function startPrimary(settings: Record<string, string | number> = {}): Promise<SystemServer> {
    const primary = await startSystemServer(settings);
    onTestFinished(() => primary.remove());
    return primary;
  }

  test.for(isFull ? (['SIGINT', 'SIGQUIT', 'SIGKILL'] as const) : (['SIGINT', 'SIGKILL'] as const))(
    'that is restarted (%s)',
    async (signal) => {
      const primary = await startPrimary();
      const server = await startOn(primary.url);
      const reader = await readStream(`${server.url}/v2/messages/stream`);
      const watching = watch(server);
      for (let restart = 0; restart < (isFull ? 20 : 1); restart++) {
        const [answered, refused] = [watching.count(200), watching.count(503)];
        await until(() => watching.count(200) > answered);
        await primary.end(signal);
        await until(() => watching.count(503) > refused);
        await primary.start();
        await untilBack(server);
      }
      await server.store.apply([makeSnapshot(makeMessage({ number: 2 }))]);
      await watching.stop();
      expect([...watching.statuses.keys()].sort()).toEqual([200, 503]);
      expect(watching.slowest).toBeLessThan(HANGS_MS);
      // The stream went on as soon as it could, without a word too little.
      await until(() => reader.hasReached(2));
      expect(reader.positions).toEqual(numbersUpTo(2, 2));
    },
  );

  test('that fails over to its replica: the address leads to another one, and that is all', async () => {
    const primary = await startPrimary();
    const address = await openAddress(primary);
    onTestFinished(() => address.close());
    const server = await startOn(address.url);
    const replica = await primary.replicate();
    onTestFinished(() => replica.remove());
    await until(async () => (await replica.query('select position from store'))[0]?.position === '1');
    const watching = watch(server);
    await primary.end('SIGKILL');
    await until(() => watching.count(503) > 0);
    // For a moment the address leads to a server that takes no writes yet.
    address.pointAt(replica);
    await untilBack(server);
    await expect(server.store.apply([makeSnapshot(makeMessage({ number: 2 }))])).rejects.toThrow(/read-only/);
    await replica.query('select pg_promote(true)');
    await until(async () => {
      await server.store.apply([makeSnapshot(makeMessage({ number: 2 }))]).catch(() => undefined);
      return (await server.ask('/v2/messages')).json<SearchBody>().data?.length === 2;
    });
    await watching.stop();
    expect(watching.slowest).toBeLessThan(HANGS_MS);
  });

  test('whose connections somebody else has taken', async () => {
    const primary = await startPrimary({ max_connections: 24, superuser_reserved_connections: 0 });
    const server = await startOn(primary.url);
    // What the service has is its own; what it would open beyond is not to be had.
    const greedy: pg.Client[] = [];
    onTestFinished(async () => void (await Promise.all(greedy.map((client) => client.end()))));
    for (;;) {
      const client = new pg.Client(primary.url);
      client.on('error', () => undefined);
      try {
        await client.connect();
        greedy.push(client);
      } catch {
        break;
      }
    }
    await primaryForgets(greedy[0]);
    const watching = watch(server);
    await until(() => watching.count(503) > 5);
    // Taken again as soon as they are free, by the quicker client; some of ours may have got in.
    expect((await server.ask('/healthz')).status).toBe(200);
    await Promise.all(greedy.splice(0).map((client) => client.end()));
    await untilBack(server);
    await watching.stop();
    expect(watching.slowest).toBeLessThan(HANGS_MS);
  });

  /** Ends the connections that the service has, so that it needs new ones. */
  async function primaryForgets(client: pg.Client | undefined): Promise<void> {
    await client?.query(
      `select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'lanescan'`,
    );
  }
});

test('a database whose last word comes with its first ends no process', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  // Ready for questions, and terminated, in one piece: nobody has had the time to take the connection into his hands.
  const ready = Buffer.from('Z\0\0\0\x05I', 'latin1');
  const words = 'SFATAL\0VFATAL\0C57P01\0Mterminating connection due to unexpected postmaster exit\0\0';
  const terminated = Buffer.concat([Buffer.from('E'), Buffer.alloc(4), Buffer.from(words)]);
  terminated.writeInt32BE(words.length + 4, 1);
  let isDying = false;
  const proxy = createServer((client) => {
    const server = connect(database.socket);
    for (const socket of [client, server]) socket.on('error', () => undefined);
    client.pipe(server);
    server.on('data', (chunk: Buffer) => {
      if (isDying && chunk.includes(ready)) client.end(Buffer.concat([chunk, terminated]));
      else client.write(chunk);
    });
    client.on('close', () => server.destroy());
    server.on('close', () => client.destroy());
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void proxy.close());
  const { port } = proxy.address() as AddressInfo;
  const server = await startOn(`postgresql://lanescan@127.0.0.1:${port}${new URL(database.url).pathname}`);

  const fatal: unknown[] = [];
  const hear = (error: unknown) => fatal.push(error);
  process.on('uncaughtException', hear);
  onTestFinished(() => void process.off('uncaughtException', hear));
  isDying = true;
  // More than there are connections by now, so that new ones are made.
  const answers = await Promise.all(Array.from({ length: 20 }, () => server.ask(freshSearch())));
  for (const answer of answers) expect([200, 503]).toContain(answer.status);
  expect(fatal).toEqual([]);
  isDying = false;
  await untilBack(server);
});

test('who stops listening for changes while the database does not answer is not kept waiting', async () => {
  const silent = createServer((socket) => socket.on('error', () => undefined).resume());
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void silent.close());
  const { port } = silent.address() as AddressInfo;
  const listener = listenForChanges({ host: '127.0.0.1', port, user: 'nobody' }, () => undefined);
  await once(silent, 'connection');
  await listener.close();
});

test('a disk so slow, or a lock held so long, that nothing is read: 503 in time, and calm again', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const server = await startOn(database.url);
  const locker = await connectForTest(database.url);
  await locker.query('begin; lock table message in access exclusive mode');
  const startedAt = performance.now();
  const refused: (Answer & { readonly ms: number })[] = [];
  const crowd = Array.from({ length: 40 }, async () => {
    const answer = await server.ask(freshSearch());
    if (answer.status !== 200) refused.push({ ...answer, ms: performance.now() - startedAt });
    return answer.status;
  });
  expect((await server.ask('/healthz')).status).toBe(200);
  // Ten have a connection. The thirty behind them have waited long enough after two seconds.
  await until(() => refused.length >= 30, HANGS_MS);
  // The long form lets the ten wait until PostgreSQL gives up, after fifteen.
  if (isFull) await until(() => refused.length === 40, HANGS_MS);
  await locker.query('rollback');
  const statuses = await Promise.all(crowd);
  expect(statuses.filter((status) => status === 200)).toHaveLength(isFull ? 0 : 40 - refused.length);
  for (const answer of refused) {
    expectError(answer, 503, 'SERVICE_UNAVAILABLE');
    expect(answer.headers['retry-after']).toMatch(/^[1-9]\d*$/);
  }
  expect(refused.at(-1)?.ms).toBeLessThan(HANGS_MS);
  await untilBack(server);
  for (let i = 0; i < 20; i++) expect((await server.ask(freshSearch())).status).toBe(200);
});
