/** Of replicas, what needs no replication; the rest is in test/chaos/replicas.test.ts. */
import { expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../../src/store/store.ts';
import { createTestDatabase } from '../../database.ts';
import { makeMessage, makeSnapshot } from '../../fixtures.ts';
import { connectTo } from '../../postgres.ts';

test('a database that is none of its replicas is never read from, not even while the primary is away', async () => {
  const ours = await createTestDatabase();
  const other = await createTestDatabase();
  const stranger = await openStore({ place: { url: other.url } });
  await stranger.apply([makeSnapshot(makeMessage())]);
  const store = await openStore({ place: { url: ours.url }, replicas: [other.url] });
  const administrator = await connectTo(other.url);
  onTestFinished(async () => {
    await administrator.end();
    await Promise.all([store.close(), stranger.close()]);
    await Promise.all([ours.drop(), other.drop()]);
  });
  const newest = { filters: {}, view: 'full', limit: 20, after: null } as const;
  expect((await store.search(newest)).records).toEqual([]);

  const name = new URL(ours.url).pathname.slice(1);
  await administrator.query(`alter database ${name} allow_connections false`);
  await administrator.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = $1', [
    name,
  ]);
  for (let i = 0; i < 5; i++) await expect(store.search(newest)).rejects.toThrow();
  expect((await store.replicas()).map(({ isUsed }) => isUsed)).toEqual([false]);

  await administrator.query(`alter database ${name} allow_connections true`);
  await expect.poll(() => store.search(newest).catch(String)).toMatchObject({ records: [], cursor: null });
});
