// @module-tag slow: kills the coordinator of a cluster, which recovers for seconds
/**
 * A search that runs while the coordinator is killed with -9: the sessions of the coordinator outlive it for a moment, and Citus
 * ends them with an error of its own. Needs CITUS_URL, CITUS_KILL_NODE and CITUS_START_NODE (nodes.ts).
 */
import { describe, expect, it, onTestFinished } from 'vitest';
import { expectError, startServer } from '../api/running-server.ts';
import { makeMessage } from '../fixtures.ts';
import { connectTo, queryOnce } from '../postgres.ts';
import { untilAnswering, urlOnNode } from './faults.ts';
import { canKillNodes, killNode, startNode } from './nodes.ts';

describe.skipIf(!canKillNodes)('while the coordinator is away', () => {
  it('rejects a search that was running, and goes on when it is back', async () => {
    const server = await startServer([makeMessage({ number: 1 })]);
    const { url } = server.store;
    const [shard] = await queryOnce<{ name: string; host: string; port: number }>(
      url,
      `select shard_name as name, nodename as host, nodeport as port from citus_shards
       where table_name = 'message'::regclass`,
    );
    if (!shard) throw new Error('The table of messages has no shard');
    const workerUrl = urlOnNode(url, shard);
    const lock = await connectTo(workerUrl, { options: '-c citus.enable_manual_changes_to_shards=on' });
    let isKilled = false;
    const restart = async () => {
      if (isKilled) await startNode(0);
      isKilled = false;
    };
    onTestFinished(async () => {
      await lock.end();
      await restart();
      await untilAnswering(url);
      await server.close();
    });

    await lock.query(`begin; lock table ${shard.name} in access exclusive mode`);
    const answered = server.ask('/v2/messages?limit=7');
    const locks = 'select 1 from pg_locks where relation = $1::regclass and not granted';
    const waiting = () => queryOnce(workerUrl, locks, [shard.name]);
    await expect.poll(async () => (await waiting()).length).toBe(1);
    isKilled = true;
    await killNode(0);

    const answer = await answered;
    expectError(answer, 503, 'SERVICE_UNAVAILABLE');
    expect(answer.headers['retry-after']).toMatch(/^\d+$/);
    expect(answer.json().message).toBe('The database does not answer at the moment. Try again shortly.');

    await lock.query('rollback');
    await restart();
    await expect.poll(async () => (await server.ask('/v2/messages?limit=8')).status).toBe(200);
  });
});
