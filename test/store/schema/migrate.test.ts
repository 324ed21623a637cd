import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseSearch } from '../../../src/domain/filters/search-parameters.ts';
import { migrate } from '../../../src/store/schema/migrate.ts';
import { openStore, type Store } from '../../../src/store/store.ts';
import { createTestDatabase, type TestDatabase } from '../../database.ts';
import {
  makeExecuted,
  makeFinalized,
  makeManualExecutionOpened,
  makeMessage,
  makePolicy,
  makeRange,
  makeRootBlessed,
  makeSent,
  makeSnapshot,
  makeVerifierCompleted,
} from '../../fixtures.ts';
import { operatorErrorOf } from '../../operator-error.ts';
import { makeOlderSchema } from '../../upgrade/older-schema.ts';

let database: TestDatabase;
let client: pg.Client;

beforeEach(async () => {
  database = await createTestDatabase({ empty: true });
  client = new pg.Client({ connectionString: database.url });
  await client.connect();
});
afterEach(async () => {
  await client.end();
  await database.drop();
});

const migrationNames = (await readdir(new URL('../../../src/store/schema/migrations/', import.meta.url)))
  .filter((file) => file.endsWith('.sql'))
  .map((file) => file.replace('.sql', ''))
  .sort();

async function schema(): Promise<string[]> {
  const { rows } = await client.query(
    `select table_name || '.' || column_name || ' ' || data_type as line from information_schema.columns
     where table_schema = 'public' union all
     select indexdef from pg_indexes where schemaname = 'public' order by 1`,
  );
  return rows.map(({ line }) => line);
}

describe('migrating', () => {
  it('makes the whole schema in an empty database, and writes down what it did', async () => {
    expect(await migrate(client)).toEqual({ applied: migrationNames, total: migrationNames.length });
    const { rows } = await client.query('select number, name, checksum from migration order by number');
    expect(rows.map(({ name }) => name)).toEqual(migrationNames);
    expect(rows.map(({ number }) => number)).toEqual(migrationNames.map((name) => Number.parseInt(name, 10)));
    for (const { checksum } of rows) expect(checksum).toMatch(/^[0-9a-f]{64}$/);
    expect((await schema()).some((line) => line.startsWith('message.record'))).toBe(true);
  });

  it('finds nothing to do the second time', async () => {
    await migrate(client);
    const before = await schema();
    expect(await migrate(client)).toEqual({ applied: [], total: migrationNames.length });
    expect(await schema()).toEqual(before);
  });

  it('is done by one of five processes that start at once on an empty database', {
    tags: 'slow',
  }, async () => {
    const attempts = await Promise.allSettled(
      Array.from({ length: 5 }, () => openStore({ place: { url: database.url }, content: 'real' })),
    );
    const stores = attempts.flatMap((attempt) => (attempt.status === 'fulfilled' ? [attempt.value] : []));
    try {
      expect(attempts.filter(({ status }) => status === 'rejected')).toEqual([]);
      const applied = stores.map(({ migrations }) => migrations.applied.length).sort();
      expect(applied).toEqual([0, 0, 0, 0, migrationNames.length]);
      const [first, ...others] = stores as [Store, ...Store[]];
      await first.apply([makeSnapshot(makeMessage())]);
      for (const store of others) expect((await store.search(parseSearch([]))).records.length).toBe(1);
    } finally {
      await Promise.all(stores.map((store) => store.close()));
    }
    const { rows } = await client.query('select count(*)::int as count from store');
    expect(rows).toEqual([{ count: 1 }]);
  });

  it('leaves no lock behind, whether it succeeds or fails', async () => {
    const locks = async () =>
      (
        await client.query(`select count(*)::int as count from pg_locks join pg_database on oid = database
                         where locktype = 'advisory' and datname = current_database()`)
      ).rows[0].count;
    await migrate(client);
    expect(await locks()).toBe(0);
    await client.query(`update migration set checksum = 'x'`);
    await operatorErrorOf(() => migrate(client));
    expect(await locks()).toBe(0);
  });

  it('refuses a database whose migration was another', { tags: 'slow' }, async () => {
    await migrate(client);
    await client.query(`update migration set checksum = repeat('0', 64) where number = 1`);
    const error = await operatorErrorOf(() => migrate(client));
    expect(error.message).toContain(`${migrationNames[0]}`);
    expect(error.remedy).not.toBe('');
    await operatorErrorOf(() => openStore({ place: { url: database.url } }));
  });

  it('refuses a database that a newer version has migrated', async () => {
    await migrate(client);
    await client.query(`insert into migration (number, name, checksum) values (9999, '9999-future', 'x')`);
    const error = await operatorErrorOf(() => migrate(client));
    expect(error.message).toContain('9999-future');
    expect(error.remedy).toMatch(/upgrade/i);
    await operatorErrorOf(() => openStore({ place: { url: database.url } }));
  });

  it('says so when the role may not make tables, and leaves nothing behind', async () => {
    const role = `limited_${process.pid}`;
    await client.query(`create role ${role} login`);
    try {
      const url = new URL(database.url);
      url.searchParams.set('user', role);
      const error = await operatorErrorOf(() => openStore({ place: { url: url.href } }));
      expect(error.message).toMatch(/permission denied/);
      expect(error.remedy).toMatch(/role/);
      expect(await schema()).toEqual([]);
    } finally {
      await client.query(`drop role ${role}`);
    }
  });

  it('gives commits that are there already the root by which blessings find them', {
    tags: 'slow',
  }, async () => {
    const folder = new URL('../../../src/store/schema/migrations/', import.meta.url);
    const old = migrationNames.filter((name) => name < '0004');
    await client.query(
      'create table migration (number integer primary key, name text not null, checksum text not null, applied_at timestamptz not null default now())',
    );
    for (const name of old) {
      const text = await readFile(new URL(`${name}.sql`, folder), 'utf8');
      await client.query(text);
      await client.query('insert into migration (number, name, checksum) values ($1, $2, $3)', [
        Number.parseInt(name, 10),
        name,
        createHash('sha256').update(text).digest('hex'),
      ]);
    }
    const message = makeMessage({ version: '1.5.0' });
    const commit = makeRange('Committed', message, 1, 3);
    const selector = (network: { chainSelector: string }) =>
      BigInt.asIntN(64, BigInt(network.chainSelector)).toString();
    await client.query(
      `insert into lane_fact (source_selector, dest_selector, onramp, to_sequence, from_sequence, fact_id,
                              network, block_hash, body)
       values ($1, $2, $3, 3, 1, '\\x01', $2, $4, $5), ($1, $2, $3, 9, 8, '\\x02', $2, $4, $6)`,
      [
        selector(message.sourceNetworkInfo),
        selector(message.destNetworkInfo),
        Buffer.from(message.onramp.slice(2), 'hex'),
        commit.seen.blockHash,
        JSON.stringify(commit),
        JSON.stringify({ ...commit, merkleRoot: 'none' }),
      ],
    );
    const store = await openStore({ place: { url: database.url } });
    try {
      expect(store.migrations.applied).toEqual(migrationNames.filter((name) => name >= '0004'));
      await store.apply([makeSent(message), makeRootBlessed(message, 1, 3)]);
      expect((await store.search(parseSearch([['status', 'BLESSED']]))).records).toHaveLength(1);
    } finally {
      await store.close();
    }
  });

  it('gives facts that are there already their kind, and asks writers for it from then on', {
    tags: 'slow',
  }, async () => {
    await makeOlderSchema(client, 10);
    const message = { ...makeMessage({ version: '2.0.0' }), data: '"kind":"Executed" \u0000' };
    const facts = [
      makeSent(message),
      makeSnapshot(message),
      makeFinalized(message),
      makePolicy(message, {}),
      makeVerifierCompleted(message, 'verifier'),
      makeManualExecutionOpened(message),
      makeExecuted(message, true),
    ];
    for (const [index, fact] of facts.entries()) {
      await client.query('insert into fact (message_id, fact_id, body) values ($1, $2, $3)', [
        Buffer.from(message.messageId.slice(2), 'hex'),
        Buffer.of(index),
        JSON.stringify(fact),
      ]);
    }
    await migrate(client);
    const { rows } = await client.query('select kind from fact order by fact_id');
    expect(rows).toEqual(facts.map(({ kind }) => ({ kind })));
    await expect(
      client.query(`insert into fact (message_id, fact_id, body) values ('\\x01', '\\x01', '{}')`),
    ).rejects.toThrow(/null value in column "kind"/);
  });

  it('takes back all of a migration that fails halfway', async () => {
    await client.query('create table history (something integer)');
    const before = await schema();
    const error = await operatorErrorOf(() => migrate(client));
    expect(error.message).toMatch(/already exists/);
    expect(await schema()).toEqual(before);
    await client.query('drop table history');
    expect((await migrate(client)).applied).toEqual(migrationNames);
  });
});
