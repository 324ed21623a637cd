// @module-tag slow: migrates databases beside writers; older-server.test.ts and next-schema.test.ts are the quick passes
/** Migrations beside writers, and writers beside a newer schema, at the level of single transactions. */
import type pg from 'pg';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { databaseSchema, knownSchema, migrate } from '../../src/store/schema/migrate.ts';
import { tables } from '../../src/store/schema/tables.ts';
import { SchemaMovedError } from '../../src/store/schema/writer-guard.ts';
import { openStore, type Store } from '../../src/store/store.ts';
import { createTestDatabase, type TestDatabase } from '../database.ts';
import { makeMessage, makeSnapshot } from '../fixtures.ts';
import { operatorErrorOf } from '../operator-error.ts';
import { connectTo } from '../postgres.ts';
import { markUpgraded, nextMigrations } from './other-schemas.ts';

const WAIT = { timeout: 120_000 };
let database: TestDatabase;
const clients: pg.Client[] = [];

async function connect(options = ''): Promise<pg.Client> {
  const client = await connectTo(database.url, { options });
  clients.push(client);
  return client;
}

beforeEach(async () => {
  database = await createTestDatabase({ empty: true });
});
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.end()));
  await database.drop();
});

/** A store with the schema of this program, and the migrations of the next release. */
async function makeStore(client: pg.Client) {
  await migrate(client);
  await client.query('insert into store (simulated) values (false)');
  return nextMigrations('create table counted as select count(*)::int as messages from message');
}

const message = `(message_id, sort_key, sent_at, position, source_selector, dest_selector, sequence_number, finality,
    summary_length, status, ready, is_snapshot, sender, receiver, origin, onramp, send_transaction, digest, record)
  values ('\\x01', 1, '2026-01-01', 1, 1, 2, 1, 0, 1, 0, false, true, '\\x01', '\\x02', '\\x01', '\\x03', '\\x04', '\\x05', '{}')`;

describe('a migration beside a writer of an older release', () => {
  test('waits for the transaction that is under way, says so, and loses none of its rows', async () => {
    const [writer, migrator] = [await connect(), await connect()];
    const { folder, name } = await makeStore(writer);
    // As `apply` does: the row of the store first, then the rest.
    await writer.query('begin; select position from store for update');
    const logLines: string[] = [];
    const migrating = migrate(migrator, { folder, writeLog: (line) => logLines.push(line) });
    await vi.waitFor(
      () => expect(logLines.join()).toMatch(/^Waiting to change the schema \(\d+ s\): .*process \d+/),
      WAIT,
    );
    await writer.query(`insert into message ${message}; commit`);
    expect((await migrating).applied).toEqual([name]);
    expect((await writer.query('select messages from counted')).rows).toEqual([{ messages: 1 }]);
  });

  test('waits for those that write without the lock of the store', async () => {
    const [writer, migrator] = [await connect(), await connect()];
    const { folder } = await makeStore(writer);
    await writer.query(`begin; insert into mirror (source) values ('http://one')`);
    const logLines: string[] = [];
    const migrating = migrate(migrator, { folder, writeLog: (line) => logLines.push(line) });
    await vi.waitFor(() => expect(logLines).not.toEqual([]), WAIT);
    // Its second table: had the migration kept that one meanwhile, both would wait for each other.
    await writer.query(
      `insert into mirror_owed (message_id, source, sent_at, checked_at, due_at) values ('\\x01', 'http://one', now(), now(), now()); commit`,
    );
    await migrating;
    const { rows } = await writer.query('select source from mirror join mirror_owed using (source)');
    expect(rows).toEqual([{ source: 'http://one' }]);
  });

  test('lets readers go on, also those in a long transaction', async () => {
    const [reader, migrator] = [await connect(), await connect()];
    const { folder, name } = await makeStore(reader);
    await reader.query('begin; select * from message; select * from store');
    expect((await migrate(migrator, { folder })).applied).toEqual([name]);
    await reader.query('select * from history; commit');
  });

  test('gives up in the end, and names the session that blocks it', async () => {
    const [writer, migrator] = [await connect(), await connect()];
    const { folder } = await makeStore(writer);
    await writer.query(
      `begin; set local application_name = 'a stuck import'; select position from store for update`,
    );
    const refusal = await operatorErrorOf(() => migrate(migrator, { folder, timeoutMs: 1 }));
    expect(refusal.message).toMatch(/a stuck import \(process \d+, since \d+ s\)/);
    expect(await databaseSchema(migrator)).toBe(await knownSchema());
    await writer.query('rollback');
    await migrate(migrator, { folder });
  });
});

describe('a writer beside a newer schema', () => {
  test('every table of the schema has the guard', async () => {
    const client = await connect();
    await migrate(client);
    const { rows } = await client.query(
      `select relname, tgname is not null as guarded from pg_class left join pg_trigger on tgrelid = pg_class.oid
       where relnamespace = 'public'::regnamespace and relkind = 'r' and relname <> 'migration'`,
    );
    expect(rows.map(({ relname }) => relname).sort()).toEqual([...tables].sort());
    expect(rows.filter(({ guarded }) => !guarded)).toEqual([]);
  });

  test.each(['', '-c lanescan.schema=7'])(
    'is refused by the database, in words, if it declares %j',
    async (options) => {
      await migrate(await connect());
      const older = await connect(options);
      if (options === '') await older.query(`set lanescan.schema = ''`);
      for (const statement of [
        'update store set position = 1',
        'delete from message',
        'delete from mirror',
      ]) {
        await expect(older.query(statement)).rejects.toMatchObject({
          code: '57L01',
          message: expect.stringMatching(/^the database was upgraded by a newer Lanescan \(schema \d+; /),
        });
      }
    },
    60_000,
  );

  test('says what to do, whatever it writes, and has written nothing', async () => {
    const store = await openStore({ place: { url: database.url }, access: 'write' });
    const known = await knownSchema();
    try {
      await store.apply([makeSnapshot(makeMessage({ number: 1 }))]);
      await markUpgraded(await connect());
      const progress = { headBlock: 1, headAt: 1, finalizedBlock: 1, indexedBlock: 1, indexedAt: 1 };
      const lease = { subscription: 'one', holder: '00000000-0000-4000-8000-000000000000' };
      const writes: Record<string, () => Promise<unknown>> = {
        apply: () => store.apply([makeSnapshot(makeMessage({ number: 2 }))]),
        'index lease': () => store.index.lease('1', 'me', 9),
        'index record': () =>
          store.index.record('1', 'me', { facts: [makeSnapshot(makeMessage({ number: 3 }))] }),
        'index progress': () => store.index.reportProgress('1', progress, null),
        mirror: () => store.mirror.record('http://one', { progress: { newestSentAt: 1 } }),
        'webhook lease': () => store.webhooks.lease(lease, 1_000),
        'webhook replay': () => store.webhooks.rewind('one', '0'),
      };
      for (const [name, write] of Object.entries(writes)) {
        const error = await operatorErrorOf(write);
        expect(error, name).toBeInstanceOf(SchemaMovedError);
        expect(error.message).toBe(
          `The database was upgraded by a newer Lanescan (schema ${known + 1}; this program knows ${known}). Nothing was written.`,
        );
        expect(error.remedy).toMatch(/Upgrade this program/);
      }
      expect(await store.latestPosition()).toBe('1');
      expect(await counts(store)).toEqual({ messages: 1, mirrors: 0, leases: 0 });
    } finally {
      await store.close();
    }
  });
});

async function counts(store: Store): Promise<unknown> {
  const client = await connect();
  const { rows } = await client.query(
    `select (select count(*) from mirror)::int as mirrors, (select count(*) from index_network)::int as leases`,
  );
  return { messages: (await store.countMessages()).count, ...rows[0] };
}
