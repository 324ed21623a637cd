// @module-tag slow: indexes long chains
/** Memory of the indexer while history is read: what is alive does not grow with blocks or messages. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, onTestFinished, test } from 'vitest';
import { indexSources } from '../../chain/indexing.ts';
import { openTestStore } from '../../database.ts';
import { type CcipWorldOptions, makeCcipWorld } from '../../virtual-chain/ccip-chain.ts';
import { startProvider } from '../../virtual-chain/endpoint.ts';
import { archiveNode } from '../../virtual-chain/endpoint-profile.ts';
import { sourceOf } from '../../virtual-chain/indexed-world.ts';

const isFull = process.env.LANESCAN_TEST_SCALE === 'full';
const RANGES = isFull ? 1_000 : 200;
const RANGES_PER_SAMPLE = RANGES / 20;
/** Of what is alive in the first half: caches fill up, and pieces in flight differ in size. */
const MAX_GROWTH = 1.25;
const LEEWAY_BYTES = 16 * 1024 * 1024;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

interface Sample {
  readonly heapBytes: number;
  readonly rssBytes: number;
}

/** What is alive, and what the process holds, each time a share of the ranges has been asked for. */
async function sampleBackfill(options: CcipWorldOptions): Promise<readonly Sample[]> {
  const world = makeCcipWorld(options);
  const provider = await startProvider(world.a, {
    profile: { ...archiveNode, logs: { hasBlockTimestamp: true } },
  });
  onTestFinished(() => provider.close());
  const store = await openTestStore();
  onTestFinished(() => store.close());
  const samples: Sample[] = [];
  let ranges = 0;
  provider.onCall = ({ method }) => {
    if (method !== 'eth_getLogs' || ++ranges % RANGES_PER_SAMPLE !== 0) return;
    collectGarbage();
    const { heapUsed, rss } = process.memoryUsage();
    samples.push({ heapBytes: heapUsed, rssBytes: rss });
  };
  const source = sourceOf(world.a, [provider], { pollEvery: 1_000, maxRange: options.blocks / RANGES });
  const { isUpToDate, statuses } = await indexSources(store, [source], { timing: { tasksEveryMs: 1_000 } });
  expect(isUpToDate).toBe(true);
  expect(statuses[0]?.worker?.created).toBe(options.messages);
  return samples;
}

test.each<readonly [string, CcipWorldOptions]>([
  ['sparse blocks', { blocks: isFull ? 10_000_000 : 200_000, messages: 200, ramps: 3 }],
  ['messages', { blocks: isFull ? 2_000_000 : 40_000, messages: isFull ? 200_000 : 2_000 }],
])('does not grow with the number of %s', { timeout: 3_600_000 }, async (what, options) => {
  const samples = await sampleBackfill(options);
  const megabytes = (bytes: number) => Math.round(bytes / 1024 / 1024);
  if (isFull) {
    const shown = samples.map(({ heapBytes, rssBytes }) => `${megabytes(heapBytes)}/${megabytes(rssBytes)}`);
    process.stdout.write(`${what}: live heap / resident, MB: ${shown.join(' ')}\n`);
  }
  expect(samples.length).toBeGreaterThanOrEqual(20);
  const most = (some: readonly Sample[]) => Math.max(...some.map(({ heapBytes }) => heapBytes));
  // The pieces that wait to be recorded fill up to their bound first.
  const early = most(samples.slice(0, samples.length / 2));
  expect(most(samples.slice(samples.length / 2))).toBeLessThan(MAX_GROWTH * early + LEEWAY_BYTES);
});
