// @module-tag slow: moves shards of a cluster under load
/**
 * Shards move between workers, and to one that is added as docs/cluster.md says, under import, indexing, a stream and webhooks:
 * nothing is lost, nothing is there twice, nothing is out of order. Needs CITUS_URL; to add a worker also CITUS_SPARE_WORKER, the
 * URL of a PostgreSQL with Citus that is no node of the cluster.
 */
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { clusterFindings } from '../../src/cli/doctor/database-findings.ts';
import { buildProgram, lanescanOn } from '../cli/program.ts';
import { createTestDatabase } from '../database.ts';
import { queryOnce, urlOfDatabase } from '../postgres.ts';
import { readPlacements, readWorkers, rebalance } from './faults.ts';
import { startLoad } from './load.ts';
import { finishLoad, problemsOf } from './load-verdict.ts';

const { CITUS_URL, CITUS_SPARE_WORKER = '' } = process.env;
const canAdd = CITUS_URL !== undefined && CITUS_SPARE_WORKER !== '';

/** Where it is skipped, the line of the skipped tests says what it needs. */
const title = canAdd ? 'a new worker' : 'a new worker: set CITUS_SPARE_WORKER';

/** What both tests put on the store. */
const scale = { blocks: 2_000, messages: 100, firstBlocks: 400 };

beforeAll(buildProgram);

describe.skipIf(CITUS_URL === undefined)('while shards move', () => {
  test('a worker is emptied and filled again, and nothing is lost, doubled or out of order', {
    timeout: 1_800_000,
  }, async () => {
    const load = await startLoad(scale);
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

describe.skipIf(!canAdd)(title, () => {
  test('gets shards under load, and nothing is lost, doubled or out of order', {
    timeout: 1_800_000,
  }, async () => {
    // Not a copy of the template: Citus would look for that database on the new worker.
    const database = await createTestDatabase({ empty: true });
    const { url } = database;
    const name = new URL(url).pathname.slice(1);
    // Before the load: what is registered first is done last, when the coordinator does not use the database any more.
    onTestFinished(async () => {
      await queryOnce(CITUS_SPARE_WORKER, `drop database if exists ${name} with (force)`);
    });
    const distribute = (...shards: readonly string[]) =>
      lanescanOn(database, 'migrate', '--distribute', ...shards);
    expect((await distribute('--shards', '3')).stdout).toContain('Distributed: 3 shards on 2 workers.');
    const load = await startLoad({ ...scale, database });
    await load.untilAtWork();
    const before = await readPlacements(url);

    await queryOnce(CITUS_SPARE_WORKER, `create database ${name}`);
    await queryOnce(urlOfDatabase(CITUS_SPARE_WORKER, name), 'create extension citus');
    const { hostname, port } = new URL(CITUS_SPARE_WORKER);
    await queryOnce(url, 'select citus_add_node($1, $2::int)', [hostname, port]);
    const repeated = await distribute();
    expect(repeated.stderr).toBe('');
    expect(repeated.stdout).toContain('Distributed: 3 shards on 3 workers.');

    load.growChains(400);
    await rebalance(url);
    expect(await readPlacements(url)).toEqual(
      Object.fromEntries([...Object.keys(before), port].map((worker) => [worker, 1])),
    );
    const findings = [...clusterFindings(await load.store.cluster())];
    expect(findings.map(({ severity }) => severity)).toEqual(['ok', 'ok', 'ok', 'ok']);
    await load.untilAtWork();

    await finishLoad(load);
    expect(await problemsOf(load)).toEqual([]);
  });
});
