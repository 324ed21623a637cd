// @module-tag slow: indexes worlds behind changing endpoints while indexers are restarted and killed
/**
 * Whatever goes wrong between a Solana cluster and the store: in the end the store is what happened, or the hole is named.
 *
 * A seed decides the traffic, which goes on while it is read, how the endpoints behave and when they change, and when the
 * indexer is ended. A few seeds by default; with LANESCAN_TEST_SCALE=full a hundred. LANESCAN_TEST_SEED=17 runs that one
 * alone (or several, with commas between them).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { createDerivation, type Randomness } from '../../../src/ingest/demo/randomness.ts';
import { startIndexer } from '../../../src/ingest/engine/indexer.ts';
import { connectNetwork } from '../../../src/ingest/families.ts';
import type { SvmSource } from '../../../src/ingest/svm/settings.ts';
import { briefly } from '../../chain/faulty-node.ts';
import { hurriedTiming, type Verdict } from '../../chain/indexing.ts';
import { createSolanaWorld } from '../../solana/ccip-world.ts';
import type { SolanaProvider } from '../../solana/endpoint/node.ts';
import { archiveNode, type SolanaProfile } from '../../solana/endpoint/solana-profile.ts';
import { profiles } from '../../solana/endpoint/solana-profiles.ts';
import { createTraffic } from '../../solana/traffic.ts';
import { indexOnce, judge, openStore, serve, sourceOf, storeReceived } from './indexed-world.ts';

const isFull = process.env.LANESCAN_TEST_SCALE === 'full';
const TIMEOUT_MS = 600_000;
const LOOK_EVERY_MS = 10;

function seedsOf(few: number, many: number): readonly string[] {
  const first = Array.from({ length: isFull ? many : few }, (_, index) => String(index + 1));
  return process.env.LANESCAN_TEST_SEED?.split(',') ?? first;
}

/** Endpoints of another cluster are for other tests: an operator takes them out of the configuration. */
const usable = profiles.filter(({ alone }) => alone !== 'stuck');

interface Stage {
  readonly store: Awaited<ReturnType<typeof openStore>>;
  readonly source: SvmSource;
  readonly randomness: Randomness;
  /** Resolves when the endpoints were asked so many times more. */
  untilAsked(times: number): Promise<void>;
}

/** Runs indexers and ends them, until it has had enough. Between two of them the world goes on. */
type Course = (stage: Stage, goOn: () => void) => Promise<void>;

async function survive(
  seed: string,
  course: Course,
): Promise<{ verdict: Verdict; last: readonly SolanaProfile[] }> {
  const randomness = createDerivation(seed).randomness('solana chaos');
  const world = createSolanaWorld({ versionOneEvery: 3 });
  const runTraffic = createTraffic(world, { seed });
  runTraffic(60);
  const choose = () => randomness.pick(usable);
  const count = randomness.integer(1, 3);
  const providers = await Promise.all(Array.from({ length: count }, () => serve(world.cluster, choose())));
  const store = await openStore();
  const offramps = randomness.chance(0.5) ? [world.programs.offRamp] : [];
  const source = sourceOf(world, providers, { offramps });
  await course({ store, source, randomness, untilAsked: (times) => untilAsked(providers, times) }, () => {
    runTraffic(randomness.integer(5, 25));
    for (const provider of providers) if (randomness.chance(0.6)) provider.profile = choose();
  });
  runTraffic(10);
  world.settle();
  // In half of all worlds one endpoint has the whole history in the end.
  const [first] = providers;
  if (first && randomness.chance(0.5)) first.profile = archiveNode;
  await storeReceived(store, world);
  const verdict = await judge(world, store, await indexOnce(store, source));
  return { verdict, last: providers.map(({ profile }) => profile) };
}

async function untilAsked(providers: readonly SolanaProvider[], times: number): Promise<void> {
  const asked = () => providers.reduce((sum, { requests }) => sum + requests, 0);
  const enough = asked() + times;
  while (asked() < enough) await delay(LOOK_EVERY_MS);
}

function expectHonest(seed: string, { verdict, last }: Awaited<ReturnType<typeof survive>>): void {
  const names = last.map(({ name }) => name).join(', ');
  const told = `seed ${seed}, at last ${names}: ${JSON.stringify(verdict).slice(0, 2_000)}`;
  // Endpoints that fail now and then may do so until a run gives up a range, and says so; an archive node does not.
  const isReadable = last.includes(archiveNode) && last.every(({ alone }) => alone === undefined);
  expect(isReadable ? ['complete'] : ['complete', 'incomplete and said so'], told).toContain(verdict.kind);
}

/** Ends in order: what was begun is finished or given up. */
const restarts: Course = async ({ store, source, randomness, untilAsked }, goOn) => {
  for (let left = randomness.integer(1, 4); left > 0; left--) {
    const stopping = new AbortController();
    const { ended } = startIndexer({
      sources: [source],
      connect: connectNetwork,
      store,
      signal: stopping.signal,
      userAgent: 'lanescan-test',
      writeLog: () => undefined,
      timing: { ...hurriedTiming, endpoints: briefly },
    });
    await untilAsked(randomness.integer(1, 60));
    goOn();
    await untilAsked(randomness.integer(1, 40));
    stopping.abort();
    await ended;
  }
};

/** `kill -9` of a process of its own. */
const kills: Course = async ({ store, source, randomness, untilAsked }, goOn) => {
  const networks = [
    {
      network: source.network.name,
      rpc: source.rpc.map(({ href }) => href),
      routers: source.routers,
      ...(source.offramps.length > 0 && { offramps: source.offramps }),
      requestsPerSecond: 10_000,
      pollSeconds: 0.05,
    },
  ];
  for (let left = randomness.integer(2, 3); left > 0; left--) {
    const child = startProcess(store.url, JSON.stringify(networks));
    const exited = once(child, 'exit');
    child.stdin?.write('go\n');
    await untilAsked(randomness.integer(1, 60));
    goOn();
    await untilAsked(randomness.integer(1, 40));
    child.kill('SIGKILL');
    await exited;
  }
};

function startProcess(database: string, networks: string): ChildProcess {
  const program = path.resolve(import.meta.dirname, '../../chaos/indexer-process.ts');
  const child = spawn(process.execPath, ['--import', 'tsx', program, database, networks], {
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  // It may be killed before it has read its input.
  child.stdin?.on('error', () => undefined);
  return child;
}

describe('restarted indexers', () => {
  test.each(seedsOf(3, 80))('seed %s', { timeout: TIMEOUT_MS }, async (seed) => {
    expectHonest(seed, await survive(seed, restarts));
  });
});

describe('killed indexers', () => {
  test.each(seedsOf(1, 20))('seed %s', { timeout: TIMEOUT_MS }, async (seed) => {
    expectHonest(seed, await survive(`killed ${seed}`, kills));
  });
});
