// @module-tag slow: starts a PostgreSQL primary and its replicas
/** What `lanescan doctor` says about the replicas of DATABASE_REPLICA_URL. */
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../../src/store/store.ts';
import {
  pauseReplay,
  resumeReplay,
  type SystemServer,
  startSystemServer,
  systemPostgres,
} from '../../chaos/system-postgres.ts';
import { createTestDatabase, provideTestDatabase } from '../../database.ts';
import { makeMessage, makeSnapshot } from '../../fixtures.ts';
import { queryOnce } from '../../postgres.ts';
import { lanescan, lanescanOn } from '../program.ts';

const PASSWORD = 'hunter2-secret';
const CLOSED_PORT = '127.0.0.1:9';

/** The one line about a replica. */
const line = (pattern: RegExp) => [expect.stringMatching(pattern)];

/** What is said about the replicas, a line each with its remedy, and the exit status. */
async function examine(primary: string, ...replicas: readonly string[]) {
  const env = { DATABASE_URL: primary, DATABASE_REPLICA_URL: replicas.join(',') };
  const { code, stdout, stderr } = await lanescan(['doctor', '--port', '0'], { env });
  expect(stdout + stderr).not.toContain(PASSWORD);
  const lines = stdout.replaceAll('\n  → ', ' → ').split('\n');
  return { code, stdout, lines: lines.filter((line) => line.includes('Replica ')) };
}

async function write(url: string, number: number): Promise<void> {
  const store = await openStore({ place: { url } });
  await store.apply([makeSnapshot(makeMessage({ number }))]);
  await store.close();
}

describe('what is no replica', () => {
  const database = provideTestDatabase();

  test('without replicas nothing is said of them', async () => {
    const { code, lines } = await examine(database.url);
    expect({ code, lines }).toEqual({ code: 0, lines: [] });
  });

  test('one that cannot be reached is a fault, the others are looked at all the same', async () => {
    const away = `postgresql://reader:${PASSWORD}@${CLOSED_PORT}/lanescan`;
    const { code, lines } = await examine(database.url, away, `${database.url}&password=${PASSWORD}`);
    expect(lines[0]).toMatch(
      /^✗ Replica 1 \(reader@127\.0\.0\.1:9\/lanescan\): Cannot use the database lanescan at 127\.0\.0\.1:9: connect ECONNREFUSED.* → Check DATABASE_REPLICA_URL, that the server runs/,
    );
    expect(lines[1]).toMatch(/^✗ Replica 2 \(lanescan@.*\): it takes writes, so it is the primary itself/);
    expect(lines).toHaveLength(2);
    expect(code).toBe(1);
  });

  test('another database is a fault, whether it is one of ours or an empty one', async () => {
    const other = await createTestDatabase();
    const empty = await createTestDatabase({ empty: true });
    onTestFinished(async () => {
      await other.drop();
      await empty.drop();
    });
    const { code, lines } = await examine(database.url, other.url, empty.url);
    for (const each of lines)
      expect(each).toMatch(
        /^✗ .*: it is another database than that of DATABASE_URL → Point DATABASE_REPLICA/,
      );
    expect(lines).toHaveLength(2);
    expect(code).toBe(1);
  });

  test.each([
    ['that is none', `reader:${PASSWORD}@host`],
    ['whose password begins a query', `postgresql://reader:1?${PASSWORD}@host/x`],
  ])('a URL %s is told, without the password', async (_what, url) => {
    const { code, lines } = await examine(database.url, url);
    expect(lines).toEqual(
      line(/^✗ Replica 1 \(.*\): DATABASE_REPLICA_URL is not a PostgreSQL URL\. → Write it/),
    );
    expect(code).toBe(1);
    // The primary's is shown by the same rules.
    expect((await examine(url)).code).toBe(1);
  });

  test('a role that may not read the tables is told how to get that', async () => {
    await queryOnce(database.url, 'create role doctors_stranger login');
    onTestFinished(async () => void (await queryOnce(database.url, 'drop role doctors_stranger')));
    const url = new URL(database.url);
    url.searchParams.set('user', 'doctors_stranger');
    const { lines } = await examine(database.url, url.href);
    expect(lines).toEqual(
      line(
        /^✗ Replica 1 \(doctors_stranger@.*may not read here: permission denied.*→ Grant it.*--grant-read/,
      ),
    );
  });
});

describe.skipIf(systemPostgres === undefined)('replicas (needs PostgreSQL of the operating system)', () => {
  let primary: SystemServer;
  let replica: SystemServer;

  beforeAll(async () => {
    primary = await startSystemServer();
    await write(primary.url, 1);
    await primary.query('create role reader login');
    replica = await primary.replicate();
  });
  afterAll(async () => {
    await replica?.remove();
    await primary?.remove();
  });
  beforeEach(() => resumeReplay(replica));

  const asReader = (url: string) => url.replace(/user=\w+/, 'user=reader');

  test('one that has everything is fine, also for a role that may only read', async () => {
    const granted = await lanescanOn(primary, 'migrate', '--grant-read', 'reader');
    expect(granted.code).toBe(0);
    // Its changes have to arrive there before the role may ask.
    await write(primary.url, 2);
    await pauseReplay(replica, primary);
    await resumeReplay(replica);
    for (const [one, other] of [
      [primary.url, replica.url],
      [asReader(primary.url), asReader(replica.url)],
    ] as const) {
      const { code, lines } = await examine(one, other);
      expect(lines).toEqual(line(/^✓ Replica 1 \(\w+@.*\): up to date$/));
      expect(code).toBe(0);
    }
  });

  test('one that lags is a warning that says how far, and why where that is known', async () => {
    await pauseReplay(replica, primary);
    onTestFinished(() => resumeReplay(replica));
    expect((await examine(primary.url, replica.url)).lines).toEqual(
      line(/^! .*: up to date, and its replay is paused → Resume it/),
    );
    await write(primary.url, 3);
    await write(primary.url, 4);
    const { code, lines, stdout } = await examine(primary.url, replica.url);
    expect(lines).toEqual(line(/^! .*: 2 changes behind, and its replay is paused → Resume it/));
    expect(stdout).toMatch(/No problems, \d warnings?\n/);
    expect(code).toBe(0);
  });

  test('a replica of another database is a fault', async () => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const { code, lines } = await examine(database.url, replica.url);
    expect(lines).toEqual(line(/^✗ .*: it is a replica of another database than that of DATABASE_URL/));
    expect(code).toBe(1);
  });

  // Last: the primary does not come back.
  test('one that is cut off is told, and with the primary away it is at least said to answer', async () => {
    await primary.end('SIGQUIT');
    const { code, lines } = await examine(primary.url, replica.url);
    expect(lines).toEqual(line(/^! .*: it answers; its primary cannot be/));
    expect(code).toBe(1);

    await primary.start();
    await replica.query(`alter system set primary_conninfo = 'host=/nowhere'`);
    await replica.query('select pg_reload_conf()');
    const receivers = async () => (await replica.query('select from pg_stat_wal_receiver')).length;
    await expect.poll(receivers).toBe(0);
    expect((await examine(primary.url, replica.url)).lines).toEqual(
      line(/^! .*: up to date, but not connected to its primary → Unless it is fed/),
    );
    await write(primary.url, 5);
    expect((await examine(primary.url, replica.url)).lines).toEqual(
      line(/^! .*: 1 change behind → The primary is read from/),
    );
  });
});
