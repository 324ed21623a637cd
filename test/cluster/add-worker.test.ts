// @module-tag slow: adds a worker to a cluster under load
/**
 * A worker is added as docs/cluster.md says, under import, indexing, a stream and webhooks: it gets shards, and nothing is lost,
 * there twice or out of order. Needs CITUS_URL, and CITUS_SPARE_WORKER: the URL of a PostgreSQL with Citus that is no node of the
 * cluster.
 */
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { clusterFindings } from '../../src/cli/doctor/database-findings.ts';
import { buildProgram, lanescan } from '../cli/program.ts';
import { urlOfDatabase } from '../cluster.ts';
import { createTestDatabase } from '../database.ts';
import { queryOnce, readPlacements, rebalance } from './faults.ts';
import { startLoad } from './load.ts';
import { finishLoad, problemsOf } from './load-verdict.ts';

const { CITUS_URL, CITUS_SPARE_WORKER = '' } = process.env;
const canAdd = CITUS_URL !== undefined && CITUS_SPARE_WORKER !== '';

/** Where it is skipped, the line of the skipped tests says what it needs. */
const title = canAdd ? 'a new worker' : 'a new worker: set CITUS_SPARE_WORKER';

beforeAll(() => buildProgram(), 600_000);

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
      lanescan(['migrate', '--distribute', ...shards], { env: { DATABASE_URL: url } });
    expect((await distribute('--shards', '3')).stdout).toContain('Distributed: 3 shards on 2 workers.');
    const load = await startLoad({ blocks: 2_000, messages: 100, firstBlocks: 400, database });
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
