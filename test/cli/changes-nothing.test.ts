// @module-tag slow: starts the program for each verb and state of the database
/** Verbs that only look change nothing: no schema, no folder, no database. */
import { existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { knownSchema } from '../../src/store/schema/migrate.ts';
import { createTestDatabase } from '../database.ts';
import { makeMessage } from '../fixtures.ts';
import { connectTo, queryOnce } from '../postgres.ts';
import { makeDevelopmentSchema } from '../upgrade/other-schemas.ts';
import { configFile, freshFolder, lanescan, lanescanOn } from './program.ts';

const { messageId } = makeMessage();
const looking = ['search', `show ${messageId}`, 'lanes', 'audit', 'export', 'webhooks list'].map((verb) =>
  verb.split(' '),
);

async function emptyDatabase(): Promise<string> {
  const database = await createTestDatabase({ empty: true });
  onTestFinished(() => database.drop());
  return database.url;
}

async function olderDatabase(): Promise<string> {
  const url = await emptyDatabase();
  const client = await connectTo(url);
  await makeDevelopmentSchema(client, 7).finally(() => client.end());
  return url;
}

const tableCount = `select count(*)::int as count from pg_tables where schemaname = 'public'`;
const migrations = 'select max(number) as latest from migration';

describe('an empty database', () => {
  test.each(looking)('%s says so and leaves it empty', async (...args) => {
    const url = await emptyDatabase();
    const { code, stdout, stderr } = await lanescanOn({ url }, ...args);
    expect(stderr).toMatch(/^lanescan: The database is empty: .* Run `lanescan migrate`/);
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    expect(await queryOnce(url, tableCount)).toEqual([{ count: 0 }]);
  });

  test('doctor reports it as not set up, and leaves it empty', async () => {
    const url = await emptyDatabase();
    const { code, stdout } = await lanescanOn({ url }, 'doctor', '--port', '0');
    expect(stdout).toMatch(/^! Database: The database is empty.*\n {2}→ Run `lanescan migrate`/m);
    expect(code).toBe(0);
    expect(await queryOnce(url, tableCount)).toEqual([{ count: 0 }]);
  });
});

describe('autoMigrate', () => {
  test('false makes `migrate` the only verb that changes an empty database', async () => {
    const url = await emptyDatabase();
    const run = (...args: readonly string[]) => lanescanOn({ url }, ...args, '--config', config);
    const config = configFile('autoMigrate: false\nport: 0\n');
    const verbs = [['serve'], ['import', '-'], ['mirror', 'http://127.0.0.1:9/', '--once'], ['demo']];
    for (const [verb = '', ...args] of verbs) {
      const { code, stderr } = await run(verb, ...args);
      expect(`${verb}: ${stderr}`).toMatch(/The database is empty/);
      expect(code).toBe(1);
    }
    expect(await queryOnce(url, tableCount)).toEqual([{ count: 0 }]);
    expect((await run('migrate')).stdout).toMatch(/^applied 0021-baseline/);
    expect((await run('import', '-')).code).toBe(0);
  });

  test('is the default: import sets up an empty database', async () => {
    const url = await emptyDatabase();
    expect((await lanescanOn({ url }, 'import', '-')).code).toBe(0);
    expect(await queryOnce(url, migrations)).toEqual([{ latest: await knownSchema() }]);
  });
});

describe('a schema from before the baseline', () => {
  test.each([...looking, ['migrate'], ['import', '-'], ['doctor', '--port', '0']])(
    '%s names the version to start first, and changes nothing',
    async (...args) => {
      const url = await olderDatabase();
      const { code, stdout, stderr } = await lanescanOn({ url }, ...args);
      expect(`${stdout}${stderr}`).toMatch(/The database has the schema 7 of a development version/);
      expect(`${stdout}${stderr}`).toMatch(/run `lanescan migrate` of commit [0-9a-f]{12} on it/);
      expect(code).toBe(1);
      expect(await queryOnce(url, migrations)).toEqual([{ latest: 7 }]);
      expect(await queryOnce(url, tableCount)).toEqual([{ count: 1 }]);
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
