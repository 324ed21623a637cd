// @module-tag slow: moves shards of a cluster under load
/**
 * Shards move between workers under import, indexing, a stream and webhooks: nothing is lost, nothing is there twice, nothing is
 * out of order. Needs CITUS_URL.
 */
import { beforeAll, describe, expect, test } from 'vitest';
import { buildProgram } from '../cli/program.ts';
import { queryOnce } from '../postgres.ts';
import { readPlacements, readWorkers, rebalance } from './faults.ts';
import { startLoad } from './load.ts';
import { finishLoad, problemsOf } from './load-verdict.ts';

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
    const { databaseUrl } = load;
    await load.untilAtWork();
    const before = await readPlacements(databaseUrl);
    const [emptied, ...others] = await readWorkers(databaseUrl);
    expect(others.length).toBeGreaterThan(0);
    const place = [emptied?.host, emptied?.port];
    const acknowledgedBefore = load.acknowledged;

    load.growChains(400);
    await queryOnce(databaseUrl, `select citus_drain_node($1, $2::int, 'block_writes')`, place);
    expect(Object.keys(await readPlacements(databaseUrl))).not.toContain(String(emptied?.port));
    await load.untilAtWork();

    load.growChains(400);
    await queryOnce(
      databaseUrl,
      `select citus_set_node_property($1, $2::int, 'shouldhaveshards', true)`,
      place,
    );
    await rebalance(databaseUrl);
    expect(await readPlacements(databaseUrl)).toEqual(before);
    await load.untilAtWork();

    await finishLoad(load);
    process.stderr.write(
      `rebalance: ${load.acknowledged - acknowledgedBefore} batches and ${load.stream.changes.length} changes in all; ` +
        `${load.searches.answered} searches answered, ${load.searches.refused} refused\n`,
    );
    expect(await problemsOf(load)).toEqual([]);
  });
});
