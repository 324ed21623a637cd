// @module-tag slow: starts the program for each verb and state of the database
/** Verbs that only look change nothing: no schema, no folder, no database. */
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import pg from 'pg';
import { afterEach, describe, expect, test } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../database.ts';
import { makeMessage } from '../fixtures.ts';
import { makeDevelopmentSchema } from '../upgrade/other-schemas.ts';
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
  await makeDevelopmentSchema(client, 7);
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

describe('autoMigrate', () => {
  test('false makes `migrate` the only verb that changes an empty database', async () => {
    const { url, query } = await emptyDatabase();
    const folder = freshFolder();
    const config = path.join(folder, 'lanescan.yaml');
    writeFileSync(config, 'autoMigrate: false\nport: 0\n');
    const file = path.join(folder, 'none.ndjson');
    writeFileSync(file, '');
    const env = { DATABASE_URL: url };
    const verbs = [['serve'], ['import', file], ['mirror', 'http://127.0.0.1:9/', '--once'], ['demo']];
    for (const [verb = '', ...args] of verbs) {
      const { code, stderr } = await lanescan([verb, '--config', config, ...args], { env });
      expect(`${verb}: ${stderr}`).toMatch(/The database is empty/);
      expect(code).toBe(1);
    }
    expect((await query(tableCount)).rows).toEqual([{ count: 0 }]);
    const migrated = await lanescan(['migrate', '--config', config], { env });
    expect(migrated.stdout).toMatch(/^applied 0021-baseline/);
    expect((await lanescan(['import', '--config', config, file], { env })).code).toBe(0);
  });

  test('is the default: import sets up an empty database', async () => {
    const { url, query } = await emptyDatabase();
    expect((await lanescan(['import', '-'], { env: { DATABASE_URL: url } })).code).toBe(0);
    expect((await query(migrations)).rows).toEqual([{ latest: 21 }]);
  });
});

describe('a schema from before the baseline', () => {
  test.each([...looking, ['migrate'], ['import', '-'], ['doctor', '--port', '0']])(
    '%s names the version to start first, and changes nothing',
    async (...args) => {
      const { url, query } = await olderDatabase();
      const { code, stdout, stderr } = await lanescan(args, { env: { DATABASE_URL: url } });
      expect(`${stdout}${stderr}`).toMatch(/The database has the schema 7 of a development version/);
      expect(`${stdout}${stderr}`).toMatch(/run `lanescan migrate` of commit [0-9a-f]{12} on it/);
      expect(code).toBe(1);
      expect((await query(migrations)).rows).toEqual([{ latest: 7 }]);
      expect((await query(tableCount)).rows).toEqual([{ count: 1 }]);
    },
  );
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
