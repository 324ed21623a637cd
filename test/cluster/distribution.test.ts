// @module-tag slow: distributes databases over a cluster
/** `lanescan migrate --distribute`: what it rejects, and, with CITUS_URL, what becomes of a store that has messages. */
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { clusterFindings } from '../../src/cli/doctor/database-findings.ts';
import { type DistributionOptions, distributeDatabase } from '../../src/store/cluster/distribution.ts';
import { distributedTables } from '../../src/store/cluster/layout.ts';
import { runMigration } from '../../src/store/cluster/migration-statements.ts';
import { withoutWriters } from '../../src/store/schema/migration-lock.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { startSystemServer, systemPostgres } from '../chaos/system-postgres.ts';
import { buildProgram, freshFolder, lanescan } from '../cli/program.ts';
import { createTestDatabase, type TestDatabase } from '../database.ts';
import { makeMessage, makeSnapshot } from '../fixtures.ts';
import { operatorErrorOf } from '../operator-error.ts';
import { connectTo, queryOnce } from '../postgres.ts';
import { readWorkers, urlOnNode } from './faults.ts';

const isOnCluster = process.env.CITUS_URL !== undefined;
const MESSAGES = 120;

async function emptyDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase({ empty: true });
  onTestFinished(() => database.drop());
  return database;
}

/** A database with messages, on one node although the server may be a coordinator. */
async function filledDatabase(): Promise<TestDatabase> {
  const database = await emptyDatabase();
  const store = await openStore({ place: { url: database.url } });
  await store.apply(Array.from({ length: MESSAGES }, (_, number) => makeSnapshot(makeMessage({ number }))));
  await store.close();
  return database;
}

describe.skipIf(!isOnCluster)('distribution over a cluster', () => {
  const distributed = async (url: string) => {
    const hashed = `select logicalrelid::text as name from pg_dist_partition where partmethod = 'h'`;
    return (await queryOnce<{ name: string }>(url, hashed)).map(({ name }) => name).sort();
  };
  const errorOf = (url: string, options?: DistributionOptions) =>
    operatorErrorOf(() => distributeDatabase(url, options));
  const allTables = [...distributedTables].sort();

  /** Opens the store for the rest of the test. */
  async function open(url: string): Promise<Store> {
    const store = await openStore({ place: { url } });
    onTestFinished(() => store.close());
    return store;
  }

  const newest = { filters: {}, view: 'full', limit: 1_000, after: null } as const;

  it('moves the messages that are there, and goes on with them', async () => {
    const { url } = await filledDatabase();
    const single = await openStore({ place: { url } });
    const before = await single.search(newest);
    const { changes: changesBefore } = await single.changesAfter('0', 1_000);
    await single.close();

    const report = await distributeDatabase(url, { shards: 6 });
    expect(report).toEqual({ distributed: [...distributedTables], shards: 6, workers: 2 });
    expect(await distributed(url)).toEqual(allTables);
    const local = await Promise.all(
      distributedTables.map((table) =>
        queryOnce(url, 'select pg_relation_size($1::regclass)::int as bytes', [table]),
      ),
    );
    expect(local.flat().every(({ bytes }) => bytes === 0)).toBe(true);

    const store = await open(url);
    expect((await store.search(newest)).records).toEqual(before.records);
    expect((await store.changesAfter('0', 1_000)).changes).toEqual(changesBefore);
    await store.apply([makeSnapshot(makeMessage({ number: MESSAGES }))]);
    expect(await store.latestPosition()).toBe(String(MESSAGES + 1));
    const compared = await store.derived.compare({ signal: new AbortController().signal });
    expect(compared).toMatchObject({ messages: MESSAGES + 1, disagreements: [] });
    const findings = [...clusterFindings(await store.cluster())];
    expect(findings.map(({ severity }) => severity)).toEqual(['ok', 'ok', 'ok']);
    expect(findings[0]?.what).toMatch(/^Cluster: Citus \d.*, 2 workers, 6 shards of each table$/);
  });

  it('can be repeated while the store is in use, and sets what a worker lacks', async () => {
    const { url } = await filledDatabase();
    await distributeDatabase(url);
    const inUse = await open(url);
    const [worker] = await readWorkers(url);
    const name = new URL(url).pathname.slice(1);
    await queryOnce(
      urlOnNode(url, worker as never),
      `set citus.enable_ddl_propagation = off; alter database ${name} reset enable_seqscan`,
    );
    const wrong = async () => {
      const store = await openStore({ place: { url } });
      const figures = await store.cluster().finally(() => store.close());
      return figures?.workers.map(({ wrongSettings }) => wrongSettings);
    };
    await expect.poll(wrong).toEqual([['enable_seqscan'], []]);
    expect(await distributeDatabase(url)).toEqual({ distributed: [], shards: 2, workers: 2 });
    await expect.poll(wrong).toEqual([[], []]);
    expect((await inUse.search(newest)).records.length).toBe(MESSAGES);
  });

  it('changes nothing when it is interrupted, and succeeds when it is repeated', async () => {
    const { url } = await filledDatabase();
    // The last table cannot be distributed while this is read; all others are distributed before, in the same transaction.
    const reader = await connectTo(url);
    await reader.query(`begin; select count(*) from ${distributedTables.at(-1)}`);
    const stop = new AbortController();
    const logLines: string[] = [];
    const options: DistributionOptions = { signal: stop.signal, writeLog: (line) => logLines.push(line) };
    const attempt = distributeDatabase(url, options).then(() => 'distributed', String);
    await expect.poll(() => logLines.join()).toContain('Waiting to change the schema');
    stop.abort();
    expect(await attempt).toMatch(/abort/i);
    expect(await distributed(url)).toEqual([]);
    await reader.end();

    const store = await openStore({ place: { url } });
    expect((await store.search(newest)).records.length).toBe(MESSAGES);
    await store.close();
    expect(await distributeDatabase(url)).toMatchObject({ distributed: [...distributedTables] });
    expect((await (await open(url)).search(newest)).records.length).toBe(MESSAGES);
  });

  it('is rejected while another process uses the database', async () => {
    const { url } = await filledDatabase();
    const store = await openStore({ place: { url } });
    const error = await errorOf(url);
    expect(error.message).toMatch(
      /^Other Lanescan processes use this database: \d+ connections? from 1 host\.$/,
    );
    expect(await distributed(url)).toEqual([]);
    await store.close();
    await expect.poll(() => distributeDatabase(url).then(() => 'distributed', String)).toBe('distributed');
  });

  it('with another number of shards is rejected once the tables are distributed', async () => {
    const { url } = await filledDatabase();
    await distributeDatabase(url, { shards: 4 });
    const error = await errorOf(url, { shards: 8 });
    expect(error.message).toBe(
      'The tables are distributed already, with 4 shards each; --shards 8 does not change that.',
    );
    expect(await distributeDatabase(url, { shards: 4 })).toMatchObject({ distributed: [], shards: 4 });
  });

  it('is rejected on a worker', async () => {
    const { url } = await filledDatabase();
    const [worker] = await readWorkers(url);
    const error = await errorOf(urlOnNode(url, worker as never));
    expect(error.message).toBe('The database is on a worker of a Citus cluster.');
  });

  it('is demanded where a later migration has replaced a distributed table by a local one', async () => {
    const { url } = await filledDatabase();
    await distributeDatabase(url);
    // As a migration does that copies a table: the new one is local, with the rows of all shards.
    await queryOnce(
      url,
      `create table replaced as select * from index_chore; drop table index_chore;
       alter table replaced rename to index_chore; alter table index_chore add primary key (message_id, kind)`,
    );
    const error = await operatorErrorOf(() => openStore({ place: { url } }));
    expect(error.message).toBe('The store is distributed over a cluster, except for index_chore.');
    expect(await distributeDatabase(url)).toMatchObject({ distributed: ['index_chore'] });
    await open(url);
  });

  it('leaves tables that later migrations can alter in place', async () => {
    const { url } = await filledDatabase();
    await distributeDatabase(url);
    const client = await connectTo(url);
    onTestFinished(() => client.end());
    // Several statements in the transaction of a migration, over distributed and local tables.
    await client.query(`set lanescan.schema = '1000000'`);
    await withoutWriters(client, {}, () =>
      runMigration(
        client,
        `alter table message add column later integer not null default 0;
         create index message_later on message (later, sent_at desc, message_id desc);
         alter table history add column later boolean;
         update message set later = 1;
         alter table store add column later boolean;`,
      ),
    );
    expect(await distributed(url)).toEqual(allTables);
    expect((await (await open(url)).search(newest)).records.length).toBe(MESSAGES);
  });

  it('leaves no use for replicas of the coordinator, which are refused', async () => {
    const { url } = await filledDatabase();
    await distributeDatabase(url);
    const error = await operatorErrorOf(() => openStore({ place: { url }, replicas: [url] }));
    expect(error.message).toContain('a replica of the coordinator has no shards');
  });
});

describe.skipIf(isOnCluster)('distribution of a database without Citus is rejected', () => {
  it('on a plain PostgreSQL', async () => {
    const { url } = await emptyDatabase();
    const error = await operatorErrorOf(() => distributeDatabase(url));
    expect(error.message).toBe('The database has no Citus extension, so it cannot be distributed.');
    expect(error.remedy).toContain('create extension citus');
  });

  it.skipIf(systemPostgres === undefined)('on a replica', async () => {
    const primary = await startSystemServer();
    onTestFinished(() => primary.remove());
    await (await openStore({ place: { url: primary.url } })).close();
    const replica = await primary.replicate();
    onTestFinished(() => replica.remove());
    const error = await operatorErrorOf(() => distributeDatabase(replica.url));
    expect(error.message).toBe('The database is a replica, which cannot be changed.');
  });

  describe('by the command', () => {
    beforeAll(buildProgram);
    const run = async (args: readonly string[], env: Readonly<Record<string, string>>) => {
      const { code, stderr } = await lanescan(['migrate', ...args], { env });
      return { code, stderr };
    };

    it('with the words of the error', async () => {
      const { url } = await emptyDatabase();
      const { code, stderr } = await run(['--distribute'], { DATABASE_URL: url });
      expect(code).toBe(1);
      expect(stderr).toContain('The database has no Citus extension, so it cannot be distributed.');
    });

    it('for an embedded database', async () => {
      const { code, stderr } = await run(['--distribute', '--data', await freshFolder()], {});
      expect(code).toBe(2);
      expect(stderr).toContain('The embedded database is one machine and cannot be distributed.');
    });

    it.each([
      [['--shards', '4'], '--shards is for --distribute.'],
      [['--distribute', '--shards', '0'], '"0" is not a number of shards.'],
      [['--distribute', '--shards', 'many'], '"many" is not a number of shards.'],
    ])('for %j', async (args, words) => {
      const { code, stderr } = await run(args, { DATABASE_URL: 'postgresql://127.0.0.1:9/none' });
      expect(code).toBe(2);
      expect(stderr).toContain(words);
    });
  });
});
