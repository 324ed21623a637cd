// @module-tag slow: starts a PostgreSQL primary and its replica, and the built program
/** What `lanescan migrate --distribute` says where there is no cluster. */
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { distributeDatabase } from '../../src/store/cluster/distribution.ts';
import { openStore } from '../../src/store/store.ts';
import { startSystemServer, systemPostgres } from '../chaos/system-postgres.ts';
import { buildProgram, freshFolder, lanescan } from '../cli/program.ts';
import { createTestDatabase, type TestDatabase } from '../database.ts';
import { operatorErrorOf } from '../operator-error.ts';

async function testDatabase(): Promise<TestDatabase> {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  return database;
}

describe.skipIf(process.env.CITUS_URL !== undefined)(
  'distribution of a database without Citus is refused',
  () => {
    it('on a plain PostgreSQL', async () => {
      const { url } = await testDatabase();
      const refusal = await operatorErrorOf(() => distributeDatabase(url));
      expect(refusal.message).toBe('The database has no Citus extension, so it cannot be distributed.');
      expect(refusal.remedy).toContain('create extension citus');
    });

    it.skipIf(systemPostgres === undefined)('on a replica', { timeout: 120_000 }, async () => {
      const primary = await startSystemServer();
      onTestFinished(() => primary.remove());
      await (await openStore({ place: { url: primary.url } })).close();
      const replica = await primary.replicate();
      onTestFinished(() => replica.remove());
      const refusal = await operatorErrorOf(() => distributeDatabase(replica.url));
      expect(refusal.message).toBe('The database is a replica, which cannot be changed.');
    });

    describe('by the command', () => {
      beforeAll(buildProgram, 300_000);
      const run = async (args: readonly string[], env: Readonly<Record<string, string>>) => {
        const { code, stderr } = await lanescan(['migrate', ...args], { env });
        return { code, stderr };
      };

      it('with the words of the refusal', async () => {
        const { url } = await testDatabase();
        const { code, stderr } = await run(['--distribute'], { DATABASE_URL: url });
        expect(code).toBe(1);
        expect(stderr).toContain('The database has no Citus extension, so it cannot be distributed.');
      });

      it('for an embedded database', { timeout: 120_000 }, async () => {
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
  },
);
