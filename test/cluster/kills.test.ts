// @module-tag slow: kills nodes of a cluster, which recover for seconds
/**
 * kill -9 of the coordinator, of the workers and of the processes that use the store, in turn and at random moments, under import,
 * indexing, a stream and webhooks: nothing that was acknowledged is lost, nothing is there twice, nothing is out of order, and
 * nothing needs a restart but what was killed.
 *
 * Needs CITUS_URL, CITUS_KILL_NODE and CITUS_START_NODE (nodes.ts), and the cluster for itself. LANESCAN_TEST_KILLS=50 kills so
 * often, LANESCAN_TEST_SEED chooses the moments.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { createDerivation } from '../../src/ingest/demo/randomness.ts';
import { until } from '../api/live/live-server.ts';
import { buildProgram } from '../cli/program.ts';
import { connectTo } from '../postgres.ts';
import { type LoadProcess, RECOVERY_MS, startLoad } from './load.ts';
import { finishLoad, problemsOf } from './load-verdict.ts';
import { canKillNodes, killNode, startNode } from './nodes.ts';

const KILLS = Number(process.env.LANESCAN_TEST_KILLS ?? 12);
const SEED = process.env.LANESCAN_TEST_SEED ?? '1';
const BLOCKS_A_KILL = 400;
const MESSAGES_A_KILL = 10;

/** Nodes by number: 0 is the coordinator. */
const victims: readonly (number | LoadProcess)[] = [0, 1, 2, 'writer', 2, 0, 1, 'indexer', 1, 2, 0, 'server'];

beforeAll(buildProgram);

/**
 * Does something while a write waits between its last COPY to the workers and its commit: the statistics are the last that it
 * writes, and they are locked. Random moments seldom meet this one, in which a worker holds rows that are not prepared yet.
 */
async function withHeldWrite(databaseUrl: string, work: () => Promise<void>): Promise<void> {
  const client = await connectTo(databaseUrl);
  client.on('error', () => undefined);
  try {
    await client.query('begin; lock table lane_total in exclusive mode');
    await until(async () => {
      const waiting = `select from pg_locks where relation = 'lane_total'::regclass and not granted`;
      return (await client.query(waiting)).rows.length > 0;
    }, RECOVERY_MS);
    await work();
  } finally {
    await client.end();
  }
}

describe.skipIf(!canKillNodes)('under kills of nodes and processes', () => {
  test(`nothing is lost, doubled or out of order after ${KILLS} kills, seed ${SEED}`, {
    timeout: 600_000 + KILLS * RECOVERY_MS,
  }, async () => {
    const randomness = createDerivation(SEED).randomness('kills of a cluster');
    const load = await startLoad({
      blocks: (KILLS + 2) * BLOCKS_A_KILL,
      messages: (KILLS + 2) * MESSAGES_A_KILL,
      firstBlocks: BLOCKS_A_KILL,
    });
    await load.untilAtWork();
    const recoveriesMs: number[] = [];
    for (let kill = 0; kill < KILLS; kill++) {
      const victim = victims[kill % victims.length] ?? 0;
      load.growChains(BLOCKS_A_KILL);
      await delay(randomness.mostlyNear(20, 1_500));
      if (typeof victim === 'number') {
        const killVictim = () => killNode(victim);
        if (victim === 0 || randomness.chance(0.5)) await killVictim();
        else await withHeldWrite(load.databaseUrl, killVictim);
        await delay(randomness.mostlyNear(20, 1_500));
        await startNode(victim);
      } else {
        await load.kill(victim);
      }
      const killedAt = performance.now();
      // Some kills meet a recovery.
      if (randomness.chance(0.2)) continue;
      await load.untilAtWork();
      recoveriesMs.push(Math.round(performance.now() - killedAt));
      process.stderr.write(
        `kill ${kill + 1} of ${KILLS}: ${victim}, at work after ${recoveriesMs.at(-1)} ms, ${load.acknowledged} batches, ` +
          `${load.stream.changes.length} changes\n`,
      );
      if (load.failures.length > 0) break;
    }

    await finishLoad(load);
    const { answered, refused } = load.searches;
    process.stderr.write(
      `seed ${SEED}: ${KILLS} kills, ${load.acknowledged} batches, ${load.stream.changes.length} changes, ` +
        `${load.receiver.accepted.length} webhooks, ${answered} searches answered, ${refused} refused; ` +
        `slowest recovery ${Math.max(...recoveriesMs)} ms\n`,
    );
    expect(await problemsOf(load)).toEqual([]);
    expect(load.acknowledged).toBeGreaterThan(KILLS);
    expect(load.receiver.accepted.length).toBeGreaterThan(KILLS);
    expect(answered).toBeGreaterThan(0);
  });
});
