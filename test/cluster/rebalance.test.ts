// @module-tag slow: moves shards of a cluster under load
/**
 * Shards move between workers under import, indexing, a stream and webhooks: nothing is lost, nothing is there twice, nothing is
 * out of order. Needs CITUS_URL.
 */
import pg from 'pg';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { buildProgram } from '../cli/program.ts';
import { until } from '../live/live-server.ts';
import { startLoad } from './load.ts';
import { finishLoad, problemsOf } from './load-verdict.ts';

const WORK_MS = 180_000;

beforeAll(() => buildProgram(), 600_000);

describe.skipIf(process.env.CITUS_URL === undefined)('while shards move', () => {
  test('a worker is emptied and filled again, and nothing is lost, doubled or out of order', {
    timeout: 1_800_000,
  }, async () => {
    const load = await startLoad({
      blocks: 2_000,
      messages: 100,
      firstBlocks: 400,
    });
    const client = new pg.Client({ connectionString: load.databaseUrl });
    await client.connect();
    onTestFinished(() => client.end());
    const untilAtWork = () => {
      const { acknowledged } = load;
      return until(() => load.failures.length > 0 || load.acknowledged >= acknowledged + 3, WORK_MS);
    };
    const readPlacements = async (): Promise<Record<string, number>> => {
      const { rows } = await client.query(
        `select nodeport, count(*)::int as shards from citus_shards where table_name = 'message'::regclass group by 1`,
      );
      return Object.fromEntries(rows.map(({ nodeport, shards }) => [nodeport, shards]));
    };

    await untilAtWork();
    const before = await readPlacements();
    const { rows: workers } = await client.query(
      `select nodename, nodeport from pg_dist_node where groupid <> 0 and shouldhaveshards order by nodeport`,
    );
    expect(workers.length).toBeGreaterThan(1);
    const emptied = workers[0];
    const place = [emptied.nodename, emptied.nodeport];
    const acknowledgedBefore = load.acknowledged;

    load.growChains(400);
    await client.query(`select citus_drain_node($1, $2::int, 'block_writes')`, place);
    expect(Object.keys(await readPlacements())).not.toContain(String(emptied.nodeport));
    await untilAtWork();

    load.growChains(400);
    await client.query(`select citus_set_node_property($1, $2::int, 'shouldhaveshards', true)`, place);
    await client.query(`select citus_rebalance_start(shard_transfer_mode => 'force_logical')`);
    await client.query('select citus_rebalance_wait()');
    expect(await readPlacements()).toEqual(before);
    await untilAtWork();

    await finishLoad(load);
    process.stderr.write(
      `rebalance: ${load.acknowledged - acknowledgedBefore} batches and ${load.stream.changes.length} changes in all; ` +
        `${load.searches.answered} searches answered, ${load.searches.refused} refused\n`,
    );
    expect(await problemsOf(load)).toEqual([]);
  });
});
