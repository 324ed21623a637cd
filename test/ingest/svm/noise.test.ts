// @module-tag slow: reads many thousand transactions
/**
 * Noise: transactions that name the router and do nothing. Anybody can land them for a fee, and each has to be read.
 *
 * Some thousand by default, and a million with LANESCAN_TEST_SCALE=full, which also prints how much of the allowed rate was
 * used. Memory does not grow with them, and what happened among them is found.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { createSolanaWorld } from '../../solana/ccip-world.ts';
import { addBulkNoise } from '../../solana/traffic.ts';
import { configured, stage } from './indexed-world.ts';

const isFull = process.env.LANESCAN_TEST_SCALE === 'full';
const NOISE = isFull ? 1_000_000 : 6_000;
const PER_SLOT = 50;
const SAMPLES = 20;
/** The world begins so long ago that its newest slot is not in the future, where an indexer would not believe it. */
const AGE_MS = (NOISE / PER_SLOT + 2_000) * 400;
const CALLS_PER_SECOND = isFull ? 500 : 10_000;
/** Of what is alive in the first half. */
const MAX_GROWTH = 1.25;
const LEEWAY_BYTES = 16 * 1024 * 1024;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

test('memory does not grow with noise, and messages among it are found', { timeout: 7_200_000 }, async () => {
  const world = createSolanaWorld({ startedAtMs: Date.now() - AGE_MS });
  world.send();
  world.cluster.grow(1);
  addBulkNoise(world, { count: NOISE / 2, perSlot: PER_SLOT });
  world.send({ tokens: [5n] });
  world.cluster.grow(1);
  addBulkNoise(world, { count: NOISE / 2, perSlot: PER_SLOT });
  world.send();
  const limits = { ...configured(world), requestsPerSecond: CALLS_PER_SECOND, pollEvery: 1_000 };
  const { providers, index, differences } = await stage(world, [world.cluster], limits);

  const heapBytes: number[] = [];
  let transactions = 0;
  let calls = 0;
  const count = ({ method }: { readonly method: string }) => {
    calls++;
    if (method !== 'getTransaction' || ++transactions % (NOISE / SAMPLES) !== 0) return;
    collectGarbage();
    heapBytes.push(process.memoryUsage().heapUsed);
  };
  for (const provider of providers) provider.onCall = count;
  const startedAt = performance.now();
  await index();
  const seconds = (performance.now() - startedAt) / 1000;
  if (isFull) {
    const used = calls / seconds / CALLS_PER_SECOND;
    process.stdout.write(
      `${calls} calls in ${seconds.toFixed(0)} s, ${used.toFixed(2)} of the rate; ` +
        `heap ${heapBytes.map((bytes) => Math.round(bytes / 2 ** 20)).join(' ')} MiB\n`,
    );
  }
  expect(await differences()).toEqual([]);
  expect(transactions).toBeGreaterThanOrEqual(NOISE);
  const half = heapBytes.length / 2;
  const early = Math.max(...heapBytes.slice(0, half));
  const late = Math.max(...heapBytes.slice(half));
  expect(late).toBeLessThan(early * MAX_GROWTH + LEEWAY_BYTES);
});
