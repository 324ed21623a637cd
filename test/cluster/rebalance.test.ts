// @module-tag slow: moves shards between the workers of a cluster
/** Shards move between workers while batches are written and read: nothing is lost, doubled or out of order. Needs CITUS_URL. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { isDatabaseUnavailable } from '../../src/store/store.ts';
import { openTestStore } from '../database.ts';
import { makeMessage, makeSnapshot } from '../fixtures.ts';
import { type ClusterNode, queryOnce, readWorkers } from './faults.ts';

const BATCH = 30;
const PATIENCE = { timeout: 120_000 };

describe.skipIf(process.env.CITUS_URL === undefined)('moving shards under load', { timeout: 600_000 }, () => {
  it('loses, doubles and reorders nothing', async () => {
    const store = await openTestStore();
    onTestFinished(() => store.close());
    const [home, other] = (await readWorkers(store.url)) as [ClusterNode, ClusterNode];
    const shardsOf = ({ port }: ClusterNode) =>
      queryOnce<{ id: string }>(
        store.url,
        `select shardid as id from pg_dist_shard join pg_dist_shard_placement using (shardid)
         where logicalrelid = 'message'::regclass and nodeport = $1 order by 1`,
        [port],
      );
    const [moved] = await shardsOf(home);
    const move = (from: ClusterNode, to: ClusterNode) =>
      queryOnce(store.url, `select citus_move_shard_placement($1, $2, $3, $4, $5, 'force_logical')`, [
        moved?.id,
        from.host,
        from.port,
        to.host,
        to.port,
      ]);

    let isMoving = true;
    let isWriting = true;
    let written = 0;
    const seen: number[] = [];
    const writing = (async () => {
      while (isMoving) {
        const batch = Array.from({ length: BATCH }, (_, index) =>
          makeSnapshot(makeMessage({ number: written + index + 1 })),
        );
        try {
          await store.apply(batch);
          written += BATCH;
        } catch (error) {
          if (!isDatabaseUnavailable(error)) throw error;
        }
      }
    })().finally(() => {
      isWriting = false;
    });
    const reading = (async () => {
      while (isWriting || seen.length < written) {
        const { changes } = await store.changesAfter(String(seen.at(-1) ?? 0), 1_000);
        seen.push(...changes.map(({ position }) => Number(position)));
      }
    })();
    try {
      await expect.poll(() => written, PATIENCE).toBeGreaterThan(0);
      await move(home, other);
      expect(await shardsOf(other)).toContainEqual(moved);
      const afterMove = written;
      await expect.poll(() => written, PATIENCE).toBeGreaterThan(afterMove);
      await move(other, home);
    } finally {
      isMoving = false;
      await writing;
    }
    await reading;
    expect(seen).toEqual(Array.from({ length: written }, (_, index) => index + 1));
    const report = await store.derived.compare({ signal: new AbortController().signal });
    expect(report).toMatchObject({ messages: written, disagreements: [] });
  });
});
