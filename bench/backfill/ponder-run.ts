/** Ponder over the same endpoints, knowing the contracts and the range beforehand, into a PostgreSQL database. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../server.ts';
import type { ServedChain } from './lanescan-run.ts';

export interface PonderSettings {
  readonly requestsPerSecond: number;
  readonly maxRange: number;
}

const folder = path.join(import.meta.dirname, '..', 'ponder');
const program = path.join(folder, 'node_modules', 'ponder', 'dist', 'esm', 'bin', 'ponder.js');
const LOOK_EVERY_MS = 50;
/** A backfill that takes longer is not worth waiting for. */
const LONGEST_MS = 600_000;

/** Resolves when it has read all of history. */
export async function runPonder(
  logFile: string,
  databaseUrl: string,
  { chain, providers }: ServedChain,
  { requestsPerSecond, maxRange }: PonderSettings,
): Promise<void> {
  const port = await freePort();
  const log = openSync(logFile, 'w');
  const child = spawn(
    process.execPath,
    [program, 'start', '--root', folder, '--schema', 'ponder', '--port', String(port), '--log-level', 'info'],
    {
      cwd: folder,
      env: {
        PATH: process.env.PATH,
        HOME: process.env.HOME,
        NODE_ENV: 'production',
        PONDER_TELEMETRY_DISABLED: 'true',
        DATABASE_URL: databaseUrl,
        BENCH_CHAIN: JSON.stringify({
          id: Number(chain.network.chainId),
          rpc: providers.map(({ url }) => url.href),
          requestsPerSecond,
          maxRange,
          onRamp: chain.onRamps.at(-1),
          offRamp: chain.offRamps.at(-1),
          lastBlock: chain.head,
        }),
      },
      stdio: ['ignore', log, log],
    },
  );
  const exited = once(child, 'exit');
  try {
    const begunAt = performance.now();
    while (!(await isReady(port))) {
      if (child.exitCode !== null) throw new Error(`ponder ended with ${child.exitCode}; see ${logFile}`);
      if (performance.now() - begunAt > LONGEST_MS)
        throw new Error(`ponder did not get ready; see ${logFile}`);
      await delay(LOOK_EVERY_MS);
    }
  } finally {
    child.kill('SIGKILL');
    await exited;
  }
}

/** Its own word that the backfill is done. */
async function isReady(port: number): Promise<boolean> {
  const answer = await fetch(`http://127.0.0.1:${port}/ready`).catch(() => undefined);
  await answer?.arrayBuffer();
  return answer?.status === 200;
}
