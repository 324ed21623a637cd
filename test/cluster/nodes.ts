/**
 * The nodes of a cluster as processes that a test may kill. How is given by the environment: commands that end with the number of
 * a node, 0 for the coordinator and from 1 on for the workers.
 *
 * - `CITUS_KILL_NODE`: ends the node's PostgreSQL at once, as `kill -9` does.
 * - `CITUS_START_NODE`: starts it again, and returns when it accepts connections or has failed.
 */
import { execFile } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);
const { CITUS_URL, CITUS_KILL_NODE, CITUS_START_NODE } = process.env;
const START_TIMEOUT_MS = 120_000;
const RETRY_MS = 100;

export const canKillNodes =
  CITUS_URL !== undefined && CITUS_KILL_NODE !== undefined && CITUS_START_NODE !== undefined;

if (CITUS_URL !== undefined && !canKillNodes) {
  process.stderr.write(
    'SKIPPED: the tests that kill nodes of the cluster. Set CITUS_KILL_NODE and CITUS_START_NODE (test/cluster/nodes.ts).\n',
  );
}

export async function killNode(node: number): Promise<void> {
  await command(CITUS_KILL_NODE, node);
}

/** Sessions of a killed server may live for a moment, and keep it from starting. */
export async function startNode(node: number): Promise<void> {
  for (const until = Date.now() + START_TIMEOUT_MS; ; ) {
    try {
      await command(CITUS_START_NODE, node);
      return;
    } catch (error) {
      if (Date.now() > until) throw error;
      await delay(RETRY_MS);
    }
  }
}

async function command(text: string | undefined, node: number): Promise<void> {
  await run('sh', ['-c', `${text} ${node}`]);
}
