// @module-tag slow: starts a PostgreSQL primary and its replicas
/** Reads from replicas: nobody sees less than was seen before, whatever lags, goes away or takes over. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import type { Message } from '../../src/domain/message.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { EventReader } from '../api/live/live-server.ts';
import {
  type Answer,
  expectError,
  metricOf,
  type RunningServer,
  type SearchBody,
  serveStore,
} from '../api/running-server.ts';
import { buildProgram, lanescan, start } from '../cli/program.ts';
import { emptyTables } from '../database.ts';
import { makeExecuted, makeMessage, makeSent, makeSnapshot } from '../fixtures.ts';
import { connectTo } from '../postgres.ts';
import { freePort } from './deployment.ts';
import {
  type Address,
  openAddress,
  pauseReplay,
  resumeReplay,
  type SystemServer,
  startSystemServer,
  systemPostgres,
} from './system-postgres.ts';

const aSearch = /from message m/;

/** Different each time, so that it is a replica that answers and not what was kept of the last answer. */
let asked = 0;
const freshSearch = () => `/v2/messages?limit=100&sentAfter=${new Date(asked++).toISOString()}`;

function idsOf(answer: Answer): readonly string[] {
  expect({ status: answer.status, text: answer.status === 200 ? '' : answer.text }).toEqual({
    status: 200,
    text: '',
  });
  return answer.json<SearchBody>().data.map(({ messageId }) => messageId);
}

test.each([
  [
    { DATABASE_REPLICA_URL: 'postgresql://replica/x' },
    /^lanescan: DATABASE_REPLICA_URL is set, but DATABASE_URL is not/,
  ],
  [
    { DATABASE_URL: 'postgresql://primary/x', DATABASE_REPLICA_URL: 'mysql://user:hunter2@replica/x' },
    /^lanescan: DATABASE_REPLICA_URL is not a PostgreSQL URL/,
  ],
])('settings that cannot be are rejected in words: %o', async (env, words) => {
  const { code, stderr } = await lanescan(['serve', '--port', '0'], { env });
  expect(code).toBe(1);
  expect(stderr).toMatch(words);
  expect(stderr).not.toContain('hunter2');
});

describe.skipIf(systemPostgres === undefined)(
  'with replicas (needs PostgreSQL of the operating system)',
  () => {
    let primary: SystemServer;
    let replicas: readonly [SystemServer, SystemServer];
    let address: Address;
    /** Writes as an indexer elsewhere does: the servers under test hear of it only from the database. */
    let writer: Store;

    beforeAll(async () => {
      primary = await startSystemServer({ max_connections: 200 });
      (await openStore({ place: { url: primary.url }, content: 'real' })).close();
      replicas = [await primary.replicate(), await primary.replicate()];
      address = await openAddress(primary);
      writer = await openStore({ place: { url: address.url } });
    });
    afterAll(async () => {
      await writer?.close();
      await address?.close();
      for (const server of [...(replicas ?? []), primary]) await server?.remove();
    });
    beforeEach(async () => {
      const client = await connectTo(primary.url);
      await emptyTables(client);
      await client.end();
    });

    const send = (...messages: readonly Message[]) => writer.apply(messages.map(makeSnapshot));

    async function startReading(): Promise<RunningServer> {
      const store = await openStore({
        place: { url: address.url },
        replicas: replicas.map(({ url }) => url),
        connections: 4,
      });
      const server = await serveStore({ ...store, url: address.url });
      onTestFinished(() => server.close());
      await untilUsed(server, '1', '1');
      return server;
    }

    async function untilUsed(server: RunningServer, ...expected: readonly string[]): Promise<void> {
      await expect
        .poll(async () => (await server.store.replicas()).map(({ isUsed }) => (isUsed ? '1' : '0')))
        .toEqual(expected);
    }

    /** Holds back what the replica would show. */
    async function pause(replica: SystemServer): Promise<void> {
      await pauseReplay(replica, primary);
      onTestFinished(() => resumeReplay(replica));
    }

    const searches = () => [primary, ...replicas].map((server) => server.statements(aSearch));

    test('searches go to the replicas in turn, and not to the primary', async () => {
      await send(makeMessage());
      const server = await startReading();
      const before = searches();
      for (let i = 0; i < 20; i++) expect(idsOf(await server.ask(freshSearch()))).toHaveLength(1);
      const asked = searches().map((count, index) => count - (before[index] ?? 0));
      expect(asked.reduce((sum, count) => sum + count)).toBeGreaterThanOrEqual(20);
      const [onPrimary = 0, ...onReplicas] = asked;
      // A replica that was a moment late hands one over.
      expect(onPrimary).toBeLessThanOrEqual(5);
      for (const count of onReplicas) expect(count).toBeGreaterThanOrEqual(5);
      expect(await metricOf(server, 'lanescan_replica_used{replica="2"}')).toBe('1');
      expect(await metricOf(server, 'lanescan_replica_lag_changes{replica="2"}')).toBe('0');
    });

    test('what was written is seen by the next request, though replicas lag and nobody told the server', async () => {
      const server = await startReading();
      await pause(replicas[0]);
      for (let number = 1; number <= 12; number++) {
        const message = makeMessage({ number });
        await send(message);
        const found = await server.ask(`/v2/messages/${message.messageId}`);
        expect({ number, status: found.status }).toEqual({ number, status: 200 });
        expect(idsOf(await server.ask(freshSearch()))).toHaveLength(number);
      }
    });

    test('an attempt that changes no record is found by the next search, though replicas lag', async () => {
      const message = makeMessage();
      await writer.apply([makeSent(message), makeExecuted(message, true, 9000)]);
      const server = await startReading();
      for (const replica of replicas) await pause(replica);
      const attempt = makeExecuted(message, false, 5000);
      expect(await writer.apply([attempt])).toMatchObject({ updated: 0, unchanged: 1 });
      const found = await server.ask(`/v2/messages?destTransactionHash=${attempt.seen.transactionHash}`);
      expect(idsOf(found)).toEqual([message.messageId]);
    });

    test('a replica that stopped replaying is noticed and left alone, and used again once it has caught up', async () => {
      const server = await startReading();
      await pause(replicas[0]);
      await send(makeMessage());
      expect(idsOf(await server.ask(freshSearch()))).toHaveLength(1);
      await untilUsed(server, '0', '1');
      const [lagging] = await server.store.replicas();
      expect(lagging?.lag).toBe(1);

      const before = replicas[0].statements(aSearch);
      for (let i = 0; i < 10; i++) expect(idsOf(await server.ask(freshSearch()))).toHaveLength(1);
      expect(replicas[0].statements(aSearch)).toBe(before);

      await resumeReplay(replicas[0]);
      await untilUsed(server, '1', '1');
      expect(idsOf(await server.ask(freshSearch()))).toHaveLength(1);
    });

    test('a walk sees every message that was there at its start once, while replicas lag by different amounts', async () => {
      const first = Array.from({ length: 60 }, (_, index) => makeMessage({ number: index + 1 }));
      await send(...first.slice(0, 20));
      const server = await startReading();
      await pause(replicas[0]);
      await send(...first.slice(20, 40));
      await pause(replicas[1]);
      await send(...first.slice(40));

      const seen: string[] = [];
      let cursor: string | null = null;
      do {
        const query: string = cursor === null ? '' : `&cursor=${cursor}`;
        const answer = await server.ask(`/v2/messages?limit=7${query}`);
        seen.push(...idsOf(answer));
        cursor = answer.json<SearchBody>().pagination.cursor;
        if (seen.length === 21) await resumeReplay(replicas[1]);
        await send(makeMessage({ number: 100 + seen.length }));
      } while (cursor !== null);
      const there = new Set(first.map(({ messageId }) => messageId));
      expect(seen.filter((id) => there.has(id)).sort()).toEqual([...there].sort());
    });

    test('who was told of a change by the stream finds it, or is told to come back; the past is never shown', async () => {
      const server = await startReading();
      for (const replica of replicas) await pause(replica);
      const reader = new EventReader();
      await reader.connect(`${server.url}/v2/messages/stream`);
      const message = makeMessage();
      await send(message);
      await expect.poll(() => reader.positions.length).toBe(1);
      expect(idsOf(await server.ask(freshSearch()))).toEqual([message.messageId]);

      address.pointAt(undefined);
      onTestFinished(() => address.pointAt(primary));
      await reader.disconnect();
      const refused = await server.ask(freshSearch());
      expectError(refused, 503, 'SERVICE_UNAVAILABLE');
      expect(refused.headers['retry-after']).toMatch(/^[1-9]\d*$/);

      // The replicas get the change, and with it the right to answer.
      for (const replica of replicas) await resumeReplay(replica);
      await untilUsed(server, '1', '1');
      expect(idsOf(await server.ask(freshSearch()))).toEqual([message.messageId]);
      expect((await server.ask(`/v2/messages/${message.messageId}`)).status).toBe(200);
    });

    test('while the primary is away reads go on, and the service says so in its metrics', async () => {
      const server = await startReading();
      await send(makeMessage());
      expect(idsOf(await server.ask(freshSearch()))).toHaveLength(1);
      await untilUsed(server, '1', '1');
      address.pointAt(undefined);
      onTestFinished(() => address.pointAt(primary));
      for (let i = 0; i < 20; i++) expect(idsOf(await server.ask(freshSearch()))).toHaveLength(1);
      for (const path of ['/readyz', '/v2/lanes', '/v2/stats', `/v2/messages/${makeMessage().messageId}`]) {
        expect({ path, status: (await server.ask(path)).status }).toEqual({ path, status: 200 });
      }
      expect(await metricOf(server, 'lanescan_database_up')).toBe('0');

      address.pointAt(primary);
      await expect.poll(() => metricOf(server, 'lanescan_database_up')).toBe('1');
      await send(makeMessage({ number: 2 }));
      expect(idsOf(await server.ask(freshSearch()))).toHaveLength(2);
    });

    test('while all replicas are away reads go to the primary, and none fails on the way', async () => {
      await send(makeMessage());
      const server = await startReading();
      let isOver = false;
      const statuses = new Map<number, number>();
      const reading = (async () => {
        while (!isOver) {
          const { status } = await server.ask(freshSearch());
          statuses.set(status, (statuses.get(status) ?? 0) + 1);
        }
      })();
      for (const replica of replicas) await replica.end('SIGKILL');
      await untilUsed(server, '0', '0');
      expect(idsOf(await server.ask(freshSearch()))).toHaveLength(1);
      for (const replica of replicas) await replica.start();
      await untilUsed(server, '1', '1');
      await delay(100);
      isOver = true;
      await reading;
      expect([...statuses.keys()]).toEqual([200]);
      expect(statuses.get(200)).toBeGreaterThan(10);
    });

    test('`lanescan serve` takes them from DATABASE_REPLICA_URL, and names none of their secrets', async () => {
      await buildProgram();
      await send(makeMessage());
      const port = await freePort();
      const urls = replicas.map(({ url }) => `${url}&password=hunter2`);
      const env = { DATABASE_URL: address.url, DATABASE_REPLICA_URL: urls.join(' , ') };
      const serving = start(['serve', '--port', port], { env });
      onTestFinished(async () => {
        serving.child.kill('SIGTERM');
        await serving.outcome;
      });
      await serving.untilSaid(/listens on/);
      const metrics = async () => (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      await expect.poll(metrics).toMatch(/lanescan_replica_used\{replica="2"\} 1/);
      const before = searches();
      for (let i = 0; i < 10; i++) await fetch(`http://127.0.0.1:${port}/v2/messages?limit=${i + 1}`);
      expect(searches().slice(1)).not.toEqual(before.slice(1));
      for (const text of [await metrics(), serving.said().stderr]) expect(text).not.toContain('hunter2');
    });

    // Last: from here on the first replica is another primary.
    test('after a failover to a promoted replica everything works again by itself', async () => {
      await send(makeMessage());
      const server = await startReading();
      const reader = new EventReader();
      await reader.connect(`${server.url}/v2/messages/stream`);

      await primary.end('SIGKILL');
      for (let i = 0; i < 5; i++) expect(idsOf(await server.ask(freshSearch()))).toHaveLength(1);
      await replicas[0].query('select pg_promote(true)');
      // Who runs the databases points the address at the new primary, and the other replica follows it.
      expect(idsOf(await server.ask(freshSearch()))).toHaveLength(1);
      address.pointAt(replicas[0]);
      const second = makeMessage({ number: 2 });
      await expect.poll(() => send(second).then(String, String)).toMatch(/object/);
      // The server takes a moment to find the primary again; until then what it has seen has to do.
      await expect.poll(async () => idsOf(await server.ask(freshSearch())).length).toBe(2);
      await expect.poll(() => reader.positions.length).toBe(1);
      await reader.disconnect();
    });
  },
);
