// @module-tag slow: converts a store on a cluster
/**
 * The conversion of a distributed store of schema 21: it has the rows that this program would have written, and all tables are
 * distributed. Needs CITUS_URL.
 */
import type pg from 'pg';
import { describe, expect, it, onTestFinished } from 'vitest';
import { distributedTables, readLayout } from '../../src/store/cluster/layout.ts';
import { setWorkerSettings } from '../../src/store/cluster/workers.ts';
import { migrate } from '../../src/store/schema/migrate.ts';
import { openStore } from '../../src/store/store.ts';
import { createTestDatabase } from '../database.ts';
import { makeMessage, makeSnapshot } from '../fixtures.ts';
import { connectForTest } from '../postgres.ts';
import { fillWithEveryKind } from '../upgrade/every-kind.ts';
import { contentsOf, makeOldStore } from '../upgrade/old-store.ts';

/** A database on the coordinator alone. */
async function openLocal() {
  const database = await createTestDatabase({ empty: true });
  onTestFinished(() => database.drop());
  return { url: database.url, client: await connectForTest(database.url) };
}

/** As releases with schema 21 distributed their tables. */
async function distributeOld(client: pg.ClientBase): Promise<void> {
  for (const table of [...distributedTables, 'history_attempt']) {
    await client.query(`drop trigger if exists refuse_older_writer on ${table}`);
    const [first] = distributedTables;
    const colocation =
      table === first ? `colocate_with => 'none', shard_count => 4` : `colocate_with => '${first}'`;
    await client.query(`select create_distributed_table('${table}', 'message_id', ${colocation})`);
  }
  await client.query('insert into publication (assigned_position) select position from store');
  await setWorkerSettings(client);
}

/** Whether a table is distributed shows in `publication` alone. */
async function storedIn(client: pg.ClientBase) {
  const { publication: _, ...contents } = await contentsOf(client);
  return contents;
}

describe.skipIf(process.env.CITUS_URL === undefined)('a store of schema 21 on a cluster', () => {
  it('is converted, also after an interruption, and goes on', async () => {
    const original = await openLocal();
    const local = await openStore({ place: { url: original.url } });
    await fillWithEveryKind(local, original.client);
    await local.close();
    const { url, client } = await openLocal();
    await makeOldStore(original.client, client);
    await distributeOld(client);

    const stop = new AbortController();
    const interrupted = migrate(client, {
      signal: stop.signal,
      writeLog: (line) => line === 'Converting history' && stop.abort(new Error('interrupted')),
    });
    await expect(interrupted).rejects.toThrow('interrupted');
    await migrate(client);
    expect(await storedIn(client)).toEqual(await storedIn(original.client));
    expect(await readLayout(client)).toBe('distributed');

    const store = await openStore({ place: { url } });
    onTestFinished(() => store.close());
    const { disagreements } = await store.derived.compare({ signal: new AbortController().signal });
    expect(disagreements).toEqual([]);
    const report = await store.apply([makeSnapshot(makeMessage({ number: 100_000 }))]);
    expect(report).toMatchObject({ created: 1 });
  });
});
