/** Indexers that live through a seed's world, one way or another. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import { createDerivation, type Randomness } from '../../src/ingest/demo/randomness.ts';
import type { Store } from '../../src/store/store.ts';
import { until } from '../api/live/live-server.ts';
import { type FollowingIndexer, follow } from '../chain/indexing.ts';
import { openChaoticStage, type Stage } from './stage.ts';
import { chaosTiming } from './timing.ts';
import { type Expectation, problemsOf } from './verdict.ts';

export type Survival = Awaited<ReturnType<typeof survive>>;

/** How indexers fare while the world goes on. Resolves to what is running when nothing more happens to them. */
export type Course = (world: {
  readonly stage: Stage;
  readonly randomness: Randomness;
  /** Resolves when so many more requests have come in, or the world is calm. */
  readonly untilAsked: (requests: number) => Promise<void>;
  readonly logLines: string[];
}) => Promise<{ stop(): Promise<void> }>;

/** How long nothing may change, from when all has come right, before what is wrong counts. */
const STANDSTILL_MS = 60_000;
/** As long as things change for the better, a busy machine may take this long. */
const PATIENCE_MS = 600_000;

/**
 * What was still wrong when patience ended, and what the indexers had to say.
 *
 * @param connection to the store's database
 */
export async function survive(
  seed: string,
  expectation: Expectation,
  store: Store,
  connection: pg.ClientConfig,
  course: Course,
) {
  const stage = await openChaoticStage(expectation.recording, seed);
  const logLines: string[] = [...stage.profiles];
  let isCalm = false;
  const untilAsked = async (requests: number) => {
    const enough = stage.requests + requests;
    while (!isCalm && stage.requests < enough) await delay(2);
  };
  const play = async () => {
    while (stage.requests === 0) await delay(2);
    await stage.play();
    isCalm = true;
  };
  try {
    const randomness = createDerivation(seed).randomness('course');
    const [running] = await Promise.all([course({ stage, randomness, untilAsked, logLines }), play()]);
    const calmAt = Date.now();
    let changedAt = calmAt;
    let problems: readonly string[] = [];
    do {
      await delay(100);
      const found = await problemsOf(store, connection, expectation).catch((error) => [String(error)]);
      if (found.join() !== problems.join()) changedAt = Date.now();
      problems = found;
    } while (
      problems.length > 0 &&
      Date.now() - changedAt < STANDSTILL_MS &&
      Date.now() - calmAt < PATIENCE_MS
    );
    await running.stop();
    return { problems, logLines };
  } finally {
    await stage.close();
  }
}

/** Indexers in this process: one, one that is stopped and started again, or two that take turns. */
export function inProcess(store: Store, { recording: { lab } }: Expectation): Course {
  return async ({ stage, randomness, untilAsked, logLines }) => {
    const running: FollowingIndexer[] = [];
    const start = () => running.push(follow(store, lab, { sources: stage.sources, timing: chaosTiming }));
    const stopFirst = async () => {
      const first = running.shift();
      await first?.stop();
      logLines.push(...(first?.logLines ?? []));
    };
    const atOnce = randomness.pick([1, 1, 2]);
    while (running.length < atOnce) start();
    for (let restarts = randomness.pick([0, 0, 1, 3]); restarts > 0; restarts--) {
      await untilAsked(randomness.integer(1, 150));
      await stopFirst();
      start();
    }
    return {
      async stop() {
        while (running.length > 0) await stopFirst();
      },
    };
  };
}

/** An indexer in this process, whose embedded database is killed under it: the server, or one of its sessions. */
export function withKilledDatabase(store: Store, expectation: Expectation, dataFolder: string): Course {
  return async (world) => {
    const { randomness, untilAsked } = world;
    const running = await inProcess(store, expectation)(world);
    for (let kills = randomness.integer(1, 3); kills > 0; kills--) {
      await untilAsked(randomness.integer(5, 200));
      await killDatabase(dataFolder);
    }
    return running;
  };
}

/** As soon as it is there: it may still be on its way back from the last time. */
function killDatabase(dataFolder: string): Promise<void> {
  const record = path.join(dataFolder, 'postgres', 'postmaster.pid');
  return until(() => {
    try {
      const pid = Number(readFileSync(record, 'utf8').split('\n')[0]);
      // While it is being written it names nobody, which would mean us.
      return pid > 0 && process.kill(pid, 'SIGKILL');
    } catch (error) {
      if (!['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
      return false;
    }
  });
}

/** Indexers in processes of their own, which are killed; some are put to sleep until another has taken over. */
export function inKilledProcesses(database: string): Course {
  return async ({ stage, randomness, untilAsked, logLines }) => {
    const networks = stage.sources.map(({ network, rpc, routers, finality, verify }) => ({
      network: network.name,
      rpc: rpc.map(({ href }) => href),
      routers,
      finality,
      verify,
      requestsPerSecond: 10_000,
      batchSize: 250,
      pollSeconds: 0.05,
    }));
    const prepare = () => prepareProcess(database, JSON.stringify(networks), logLines);
    let next = prepare();
    let current = next;
    const replace = () => {
      current = next;
      current.stdin?.write('go\n');
      next = prepare();
    };
    const end = async (child: ChildProcess) => {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    };
    replace();
    for (let kills = randomness.integer(2, 4); kills > 0; kills--) {
      await untilAsked(randomness.integer(1, 250));
      const last = current;
      const sleeps = randomness.chance(0.3);
      if (sleeps) last.kill('SIGSTOP');
      else await end(last);
      replace();
      await untilAsked(randomness.integer(1, 50));
      if (!sleeps) continue;
      last.kill('SIGCONT');
      await untilAsked(randomness.integer(1, 50));
      await end(last);
    }
    return {
      async stop() {
        for (const child of [current, next]) await end(child);
      },
    };
  };
}

/** A process that has loaded everything and waits for the word. It does not outlive this one. */
function prepareProcess(database: string, networks: string, logLines: string[]): ChildProcess {
  const script = fileURLToPath(new URL('indexer-process.ts', import.meta.url));
  const child = spawn(process.execPath, ['--import', 'tsx', script, database, networks], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { PATH: process.env.PATH },
  });
  child.stdin?.on('error', () => undefined);
  child.stdout?.setEncoding('utf8').on('data', (text: string) => logLines.push(text.trimEnd()));
  return child;
}
