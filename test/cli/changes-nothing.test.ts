// @module-tag slow: starts the program for each verb and state of the database
/** Verbs that only look change nothing: no schema, no folder, no database. */
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { afterEach, describe, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../database.ts';
import { makeMessage } from '../fixtures.ts';
import { makeOlderSchema } from '../upgrade/older-schema.ts';
import { freshFolder, lanescan } from './program.ts';

const { messageId } = makeMessage();
const looking: readonly (readonly string[])[] = [
  ['search'],
  ['show', messageId],
  ['lanes'],
  ['audit'],
  ['export'],
  ['webhooks', 'list'],
];
const databases: TestDatabase[] = [];

afterEach(async () => {
  for (const database of databases.splice(0)) await database.drop();
});

async function emptyDatabase(): Promise<{ url: string; query(text: string): Promise<pg.QueryResult> }> {
  const database = await createTestDatabase({ empty: true });
  databases.push(database);
  return {
    url: database.url,
    async query(text) {
      const client = new pg.Client({ connectionString: database.url });
      await client.connect();
      try {
        return await client.query(text);
      } finally {
        await client.end();
      }
    },
  };
}

async function olderDatabase() {
  const database = await emptyDatabase();
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await makeOlderSchema(client, 7);
  await client.end();
  return database;
}

const tableCount = `select count(*)::int as count from pg_tables where schemaname = 'public'`;
const migrations = 'select max(number) as latest from migration';

describe('an empty database', () => {
  test.each(looking)('%s says so and leaves it empty', async (...args) => {
    const { url, query } = await emptyDatabase();
    const { code, stdout, stderr } = await lanescan(args, { env: { DATABASE_URL: url } });
    expect(stderr).toMatch(/^lanescan: The database is empty: .* Run `lanescan migrate`/);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect((await query(tableCount)).rows).toEqual([{ count: 0 }]);
  });

  test('doctor reports it as not set up, and leaves it empty', async () => {
    const { url, query } = await emptyDatabase();
    const { code, stdout } = await lanescan(['doctor', '--port', '0'], { env: { DATABASE_URL: url } });
    expect(stdout).toMatch(/^! Database: The database is empty.*\n {2}→ Run `lanescan migrate`/m);
    expect(code).toBe(0);
    expect((await query(tableCount)).rows).toEqual([{ count: 0 }]);
  });
});

describe('an older schema', () => {
  test.each(looking)('%s says what is missing, and does not add it', async (...args) => {
    const { url, query } = await olderDatabase();
    const { code, stderr } = await lanescan(args, { env: { DATABASE_URL: url } });
    expect(stderr).toMatch(/^lanescan: The database has the schema of an earlier release: it lacks 0008-/);
    expect(stderr).toContain('run `lanescan migrate`');
    expect(code).toBe(1);
    expect((await query(migrations)).rows).toEqual([{ latest: 7 }]);
  });

  test.each([
    ['!', 'true', 0],
    ['✗', 'false', 1],
  ])('doctor marks it with %s where autoMigrate is %s', async (sign, autoMigrate, status) => {
    const { url, query } = await olderDatabase();
    const env = { DATABASE_URL: url, LANESCAN_AUTO_MIGRATE: autoMigrate };
    const { code, stdout } = await lanescan(['doctor', '--port', '0'], { env });
    expect(stdout).toContain(`${sign} Database: The database has the schema of an earlier release`);
    expect(code).toBe(status);
    expect((await query(migrations)).rows).toEqual([{ latest: 7 }]);
  });

  test('autoMigrate: false makes `migrate` the only verb that changes it', async () => {
    const { url, query } = await olderDatabase();
    const folder = freshFolder();
    const config = path.join(folder, 'lanescan.yaml');
    writeFileSync(config, 'autoMigrate: false\nport: 0\n');
    const file = path.join(folder, 'none.ndjson');
    writeFileSync(file, '');
    const env = { DATABASE_URL: url };
    const verbs = [['serve'], ['import', file], ['mirror', 'http://127.0.0.1:9/', '--once'], ['demo']];
    for (const [verb = '', ...args] of verbs) {
      const { code, stderr } = await lanescan([verb, '--config', config, ...args], { env });
      expect(`${verb}: ${stderr}`).toMatch(/schema of an earlier release: it lacks 0008-/);
      expect(code).toBe(1);
    }
    expect((await query(migrations)).rows).toEqual([{ latest: 7 }]);
    const migrated = await lanescan(['migrate', '--config', config], { env });
    expect(migrated.stdout).toMatch(/^applied 0008-/);
    expect((await lanescan(['import', '--config', config, file], { env })).code).toBe(0);
  });

  test('import brings it up to date, unless told otherwise', async () => {
    const { url, query } = await olderDatabase();
    expect((await lanescan(['import', '-'], { env: { DATABASE_URL: url } })).code).toBe(0);
    expect((await query(migrations)).rows[0].latest).toBeGreaterThan(7);
  });
});

describe('a data folder that is not there', () => {
  test.each([...looking, ['doctor', '--port', '0']])('%s does not create it', async (...args) => {
    const parent = freshFolder();
    const data = path.join(parent, 'data');
    const { code, stdout, stderr } = await lanescan([...args, '--data', data]);
    expect(`${stdout}${stderr}`).toContain(`There is no database in ${data} yet.`);
    expect(code).toBe(args[0] === 'doctor' ? 0 : 1);
    expect(existsSync(data)).toBe(false);
    expect(readdirSync(parent)).toEqual([]);
  });
});
