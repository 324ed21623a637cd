import { readdir } from 'node:fs/promises';
import type pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseSearch } from '../../../src/domain/filters/search-parameters.ts';
import { knownSchema, migrate, requireSchema } from '../../../src/store/schema/migrate.ts';
import { openStore, type Store } from '../../../src/store/store.ts';
import { createTestDatabase, type TestDatabase } from '../../database.ts';
import { makeMessage, makeSnapshot } from '../../fixtures.ts';
import { operatorErrorOf } from '../../operator-error.ts';
import { connectTo } from '../../postgres.ts';
import { BASELINE, makeDevelopmentSchema, nextMigrations } from '../../upgrade/other-schemas.ts';

let database: TestDatabase;
let client: pg.Client;

beforeEach(async () => {
  database = await createTestDatabase({ empty: true });
  client = await connectTo(database.url);
});
afterEach(async () => {
  await client.end();
  await database.drop();
});

const migrationNames = (await readdir(new URL('../../../src/store/schema/migrations/', import.meta.url)))
  .filter((file) => file.endsWith('.sql'))
  .map((file) => file.replace('.sql', ''))
  .sort();
const total = await knownSchema();

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
    expect(await migrate(client)).toEqual({ applied: migrationNames, total });
    const { rows } = await client.query('select number, name, checksum from migration order by number');
    expect(rows.map(({ name }) => name)).toEqual(migrationNames);
    expect(rows.map(({ number }) => number)).toEqual(migrationNames.map((name) => Number.parseInt(name, 10)));
    for (const { checksum } of rows) expect(checksum).toMatch(/^[0-9a-f]{64}$/);
    expect((await schema()).some((line) => line.startsWith('message.record'))).toBe(true);
  });

  it('finds nothing to do the second time', async () => {
    await migrate(client);
    const before = await schema();
    expect(await migrate(client)).toEqual({ applied: [], total });
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

  it('rejects a database whose migration was another', { tags: 'slow' }, async () => {
    await migrate(client);
    await client.query(
      `update migration set checksum = repeat('0', 64) where number = (select min(number) from migration)`,
    );
    const error = await operatorErrorOf(() => migrate(client));
    expect(error.message).toContain(`${migrationNames[0]}`);
    expect(error.remedy).not.toBe('');
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

  it('goes on with a database that has all migrations replaced by the baseline', async () => {
    await makeDevelopmentSchema(client, BASELINE);
    const store = await openStore({ place: { url: database.url } });
    try {
      expect(store.migrations).toEqual({ applied: migrationNames.slice(1), total });
      await store.apply([makeSnapshot(makeMessage())]);
      expect(await requireSchema(client)).toEqual({ applied: [], total });
    } finally {
      await store.close();
    }
    const { folder, name } = await nextMigrations('create table later ()');
    expect(await migrate(client, { folder })).toEqual({ applied: [name], total: total + 1 });
  });

  it('applies only what is missing, and names it where migrating is not allowed', async () => {
    await migrate(client);
    const { folder, name } = await nextMigrations('create table later ()');
    expect((await operatorErrorOf(() => requireSchema(client, folder))).message).toContain(
      `it lacks ${name}`,
    );
    expect((await migrate(client, { folder })).applied).toEqual([name]);
    expect(await requireSchema(client, folder)).toEqual({ applied: [], total: total + 1 });
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
