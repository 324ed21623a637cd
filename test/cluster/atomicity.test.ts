// @module-tag slow: crashes workers of a cluster, which recover for seconds
/** Writes on a cluster are whole or not there, whoever crashes, and readers see them in order. Needs CITUS_URL. */
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isDatabaseUnavailable, type Store } from '../../src/store/store.ts';
import { openTestStore } from '../database.ts';
import { makeMessage, makeSnapshot } from '../fixtures.ts';

const CRASHES = 5;
const BATCH = 40;

describe.skipIf(process.env.CITUS_URL === undefined)('a store on a cluster', () => {
  let store: Store & { readonly url: string };
  let coordinator: pg.Client;
  let written = 0;

  beforeAll(async () => {
    store = await openTestStore();
    coordinator = new pg.Client({ connectionString: store.url });
    await coordinator.connect();
  });
  afterAll(async () => {
    await coordinator.end();
    await store.close();
  });

  const nextBatch = () =>
    Array.from({ length: BATCH }, (_, index) => makeSnapshot(makeMessage({ number: written + index + 1 })));

  /** Writes a batch again until it is acknowledged, as an indexer does. */
  async function writeBatch(): Promise<void> {
    const batch = nextBatch();
    for (;;) {
      try {
        await store.apply(batch);
        written += BATCH;
        return;
      } catch (error) {
        if (!isDatabaseUnavailable(error)) throw error;
      }
    }
  }

  /** Workers that recover refuse connections for a moment. */
  async function recovered(): Promise<void> {
    await expect
      .poll(
        () =>
          store.ping().then(
            () => true,
            () => false,
          ),
        { timeout: 120_000 },
      )
      .toBe(true);
  }

  async function positions(): Promise<{ readonly position: number; readonly changes: number }> {
    const { rows: stored } = await coordinator.query('select position::float8 from store');
    const { position } = stored[0];
    const { rows } = await coordinator.query(
      'select count(distinct position)::float8 as changes from history where position <= $1',
      [position],
    );
    return { position, changes: rows[0].changes };
  }

  it('shows no position whose change is not visible, while batches are written', async () => {
    let isWriting = true;
    const writer = (async () => {
      for (let batch = 0; batch < 20; batch++) await writeBatch();
      isWriting = false;
    })();
    let [seen, reads] = [0, 0];
    while (isWriting) {
      const { position, changes } = await positions();
      expect(changes).toBe(position);
      const read = await store.changesAfter(String(seen), 1_000);
      expect(read.changes.map((change) => Number(change.position))).toEqual(
        read.changes.map((_, index) => seen + index + 1),
      );
      seen += read.changes.length;
      reads++;
    }
    await writer;
    expect(reads).toBeGreaterThan(0);
  });

  it('loses and doubles nothing that was acknowledged when workers crash', async () => {
    const { rows: workers } = await coordinator.query(
      `select nodename, nodeport from pg_dist_node where groupid <> 0`,
    );
    for (let crash = 0; crash < CRASHES; crash++) {
      const worker = workers[crash % workers.length];
      const writing = Promise.all([writeBatch()]);
      await crashWorker(worker.nodename, worker.nodeport);
      await writing;
      await writeBatch();
      await recovered();
    }
    await expect.poll(async () => (await positions()).position, { timeout: 120_000 }).toBe(written);
    expect(await positions()).toEqual({ position: written, changes: written });
    const { rows } = await coordinator.query('select count(*)::float8 as messages from message');
    expect(rows[0].messages).toBe(written);
    const report = await store.derived.compare({ signal: new AbortController().signal });
    expect(report).toMatchObject({ messages: written, disagreements: [] });
  });

  /** Kills a backend of the worker, which makes its PostgreSQL end all others and recover. */
  async function crashWorker(host: string, port: number): Promise<void> {
    const url = new URL(store.url);
    url.hostname = host;
    url.port = String(port);
    const client = new pg.Client({ connectionString: url.href });
    client.on('error', () => undefined);
    await client.connect();
    const { rows } = await client.query(
      `select pid from pg_stat_activity where datname = current_database() and backend_type = 'client backend'
       order by pid <> pg_backend_pid() desc limit 1`,
    );
    process.kill(rows[0].pid, 'SIGKILL');
    await client.end().catch(() => undefined);
  }
});
