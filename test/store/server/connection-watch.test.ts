// @module-tag slow: waits for time limits of silent connections
/** Database connections that die without a FIN or RST are noticed and replaced; those that only take long are not. */
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { openStore, type Store } from '../../../src/store/store.ts';
import { until } from '../../api/live/live-server.ts';
import { openBlackHole } from '../../chaos/black-hole.ts';
import { createTestDatabase } from '../../database.ts';
import { makeMessage, makeSnapshot } from '../../fixtures.ts';
import { connectForTest, connectTo } from '../../postgres.ts';

async function openThroughBlackHole() {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const way = await openBlackHole(database.url);
  const logLines: string[] = [];
  const store = await openStore({ place: { url: way.url }, writeLog: (line) => logLines.push(line) });
  // Does not go through the proxy.
  const direct = await connectTo(database.url);
  onTestFinished(async () => {
    await store.close();
    await direct.end();
  });
  return { store, way, logLines, direct, directUrl: database.url };
}

const add = (store: Store, number: number) => store.apply([makeSnapshot(makeMessage({ number }))]);

describe('connections that a firewall forgets', () => {
  test('searches: those under way fail, later ones work, and no dead connection is left in the pool', async () => {
    const { store, way, logLines } = await openThroughBlackHole();
    await add(store, 1);
    await Promise.all(Array.from({ length: 6 }, () => store.changesAfter('0', 5)));
    way.swallowConnections();
    await expect(store.changesAfter('0', 5)).rejects.toMatchObject({ code: '08006' });
    // One was found dead, and took the others of its time along.
    for (let i = 0; i < 10; i++) expect((await store.changesAfter('0', 5)).changes).toHaveLength(1);
    expect(logLines.join('\n')).toMatch(
      /Replacing \d+ database connection\(s\) that died without being closed/,
    );
  });

  test('writes: the one under way fails, its lock is released, and the next one works', async () => {
    const { store, way, direct, directUrl } = await openThroughBlackHole();
    await add(store, 1);
    // Not the one that looks: within a transaction it would see the same sessions again and again.
    const locker = await connectForTest(directUrl);
    await locker.query('begin; select from store for update');
    const blocked = add(store, 2);
    blocked.catch(() => undefined);
    const waiting = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
    await until(async () => (await direct.query(waiting)).rowCount === 1);
    way.swallowConnections();
    await locker.query('commit');
    await expect(blocked).rejects.toMatchObject({ code: '08006' });
    // The lost session had the lock by then, in a transaction that nobody would have ended.
    await until(() =>
      add(store, 3)
        .then(() => true)
        .catch(() => false),
    );
    expect(Number((await direct.query('select position from store')).rows[0].position)).toBe(2);
  });

  test('exports and deliveries', async () => {
    const { store, way } = await openThroughBlackHole();
    for (let number = 1; number <= 120; number++) await add(store, number);
    const records = store.exportRecords({});
    await records.next();
    await store.webhooks.backlog();
    way.swallowConnections();
    await expect(records.next()).rejects.toMatchObject({ code: '08006' });
    await until(async () => (await store.webhooks.backlog().catch(() => undefined)) !== undefined);
    const again = store.exportRecords({});
    expect((await again.next()).value?.length).toBeGreaterThan(0);
    await again.return(undefined);
  });
});

test('a statement that takes long is left alone while the server works on it', async () => {
  const { store, direct, logLines } = await openThroughBlackHole();
  await direct.query(
    `create function slowly() returns trigger language plpgsql as 'begin perform pg_sleep(5); return new; end';
     create trigger slowly before insert on message for each row execute function slowly()`,
  );
  // A COPY, during which the server says nothing for longer than any silence that is suspect.
  await add(store, 1);
  expect(logLines).toEqual([]);
  expect(await store.latestPosition()).toBe('1');
});

test('an answer that is read only after the first probe is not lost', async () => {
  const { store, way, logLines } = await openThroughBlackHole();
  await add(store, 1);
  // They are released when the probe has been closed: it found a server that has answered already.
  way.delayAnswers();
  await add(store, 2);
  expect(logLines).toEqual([]);
  expect(await store.latestPosition()).toBe('2');
});

test('a server that is out of reach altogether: whatever waits is given up, and works again afterwards', async () => {
  const { store, way } = await openThroughBlackHole();
  await add(store, 1);
  way.swallowEverything();
  await expect(add(store, 2)).rejects.toThrow(/connection is lost|timeout/);
  way.recover();
  await until(() =>
    add(store, 3)
      .then(() => true)
      .catch(() => false),
  );
});

test('a store is closed within seconds though a statement waits and no connection answers', async () => {
  const { store, way, logLines } = await openThroughBlackHole();
  await add(store, 1);
  way.swallowEverything();
  const lost = add(store, 2);
  lost.catch(() => undefined);
  const writers = () => store.pools().find(({ pool }) => pool === 'writers');
  await until(() => writers()?.total === 1 && writers()?.idle === 0);
  await store.close();
  await expect(lost).rejects.toThrow();
  expect(logLines.join('\n')).toMatch(/Gave up \d+ database connection\(s\)/);
});

test.runIf(process.platform === 'linux')('the kernel probes every connection that is idle', async () => {
  const { store, way } = await openThroughBlackHole();
  await add(store, 1);
  const listener = store.onChanges(() => undefined);
  onTestFinished(() => listener.close());
  await until(() => listener.isConnected);
  await store.webhooks.backlog();
  const port = Number(new URL(way.url).port).toString(16).toUpperCase().padStart(4, '0');
  // Of /proc/net/tcp: the other end's address, and the timer (02 is keepalive) with the time that is left (1/100 s).
  const ours = () =>
    readFileSync('/proc/net/tcp', 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[2]?.endsWith(`:${port}`) && fields[3] === '01');
  await delay(100);
  await until(() => ours().length >= 3 && ours().every((fields) => fields[5]?.startsWith('02:')));
  for (const fields of ours()) {
    expect(Number.parseInt(fields[5]?.slice(3) ?? '', 16), fields.join(' ')).toBeLessThanOrEqual(1_000);
  }
});
