/**
 * Every personality of a Solana endpoint, alone and beside an archive: an indexer reads everything, or says that and why
 * something is missing.
 */
import { describe, expect, test } from 'vitest';
import { briefly } from '../../chain/faulty-node.ts';
import { openTestStore } from '../../database.ts';
import { createSolanaWorld } from '../../solana/ccip-world.ts';
import { startSolanaProvider } from '../../solana/endpoint/provider.ts';
import { archiveNode, type SolanaPersonality } from '../../solana/endpoint/solana-profile.ts';
import { personalities, personalityOf, ZOO_STEPS } from '../../solana/endpoint/solana-profiles.ts';
import { makeTraffic } from '../../solana/traffic.ts';
import { indexOnce, judge, sourceOf, storeReceived, type Verdict } from './indexed-world.ts';

async function verdictOf(...behaviours: readonly SolanaPersonality[]): Promise<Verdict> {
  const world = createSolanaWorld({ versionOneEvery: 3 });
  makeTraffic(world, { seed: 'zoo', steps: ZOO_STEPS, hasTruncation: false });
  world.settle();
  const providers = await Promise.all(
    behaviours.map((personality) => startSolanaProvider(world.cluster, { personality })),
  );
  const store = await openTestStore();
  try {
    await storeReceived(store, world);
    const canGoOn = behaviours.some(({ alone }) => alone !== 'stuck');
    const indexed = await indexOnce(
      store,
      sourceOf(world, providers, { offramps: [world.programs.offRamp] }),
      // A rate limit is waited for, as with the usual timing.
      canGoOn
        ? { timing: { endpoints: { ...briefly, maxWaitMs: 30_000 } } }
        : { until: (status) => status?.worker?.problem != null },
    );
    return await judge(world, store, indexed);
  } finally {
    await store.close();
    for (const provider of providers) await provider.close();
  }
}

function expectHonest(verdict: Verdict, behaviours: readonly SolanaPersonality[]): void {
  const isReadable = behaviours.every(({ alone }) => alone === 'complete');
  const allowed = isReadable ? ['complete'] : ['complete', 'incomplete and said so'];
  const names = behaviours.map(({ name }) => name).join(' and ');
  expect(allowed, `${names}: ${JSON.stringify(verdict).slice(0, 2_000)}`).toContain(verdict.kind);
}

const quick = ['pruned-in-silence'];

describe('alone', () => {
  const isQuick = ({ name }: SolanaPersonality) => quick.includes(name);
  const named = (list: readonly SolanaPersonality[]) => list.map((one) => [one.name, one] as const);
  const honest = async (_: string, personality: SolanaPersonality) =>
    expectHonest(await verdictOf(personality), [personality]);
  test.each(named(personalities.filter(isQuick)))('%s', { timeout: 120_000 }, honest);
  test.each(named(personalities.filter((one) => !isQuick(one))))(
    '%s',
    { tags: 'slow', timeout: 180_000 },
    honest,
  );
});

describe('before an archive node', () => {
  const beside = async (name: string) => {
    const pair = [personalityOf(name), archiveNode];
    expectHonest(await verdictOf(...pair), pair);
  };
  test.each(personalities.map(({ name }) => name))('%s', { tags: 'slow', timeout: 180_000 }, beside);
});
