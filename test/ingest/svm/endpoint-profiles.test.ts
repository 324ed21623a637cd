/**
 * Every profile of a Solana endpoint, alone and beside an archive: an indexer reads everything, or says that and why
 * something is missing.
 */
import { describe, expect, test } from 'vitest';
import { briefly } from '../../chain/faulty-node.ts';
import type { Verdict } from '../../chain/indexing.ts';
import { createSolanaWorld } from '../../solana/ccip-world.ts';
import { archiveNode, type SolanaProfile } from '../../solana/endpoint/solana-profile.ts';
import { PROFILE_STEPS, profileOf, profiles } from '../../solana/endpoint/solana-profiles.ts';
import { createTraffic } from '../../solana/traffic.ts';
import { judge, stage } from './indexed-world.ts';

async function verdictOf(...behaviours: readonly SolanaProfile[]): Promise<Verdict> {
  const world = createSolanaWorld({ versionOneEvery: 3 });
  createTraffic(world, { seed: 'zoo', hasTruncation: false })(PROFILE_STEPS);
  const { store, providers, index } = await stage(
    world,
    behaviours.map(() => world.cluster),
  );
  for (const [number, provider] of providers.entries()) provider.profile = behaviours[number] ?? archiveNode;
  const canGoOn = behaviours.some(({ alone }) => alone !== 'stuck');
  // A rate limit is waited for, as with the usual timing.
  const indexed = await index(
    canGoOn
      ? { timing: { endpoints: { ...briefly, maxWaitMs: 30_000 } } }
      : { until: ([status]) => status?.worker?.problem != null },
  );
  return judge(world, store, indexed);
}

function expectHonest(verdict: Verdict, behaviours: readonly SolanaProfile[]): void {
  const isReadable = behaviours.every(({ alone }) => alone === undefined);
  const allowed = isReadable ? ['complete'] : ['complete', 'incomplete and said so'];
  const names = behaviours.map(({ name }) => name).join(' and ');
  expect(allowed, `${names}: ${JSON.stringify(verdict).slice(0, 2_000)}`).toContain(verdict.kind);
}

const quick = ['pruned-in-silence'];

describe('alone', () => {
  const isQuick = ({ name }: SolanaProfile) => quick.includes(name);
  const named = (list: readonly SolanaProfile[]) => list.map((one) => [one.name, one] as const);
  const honest = async (_: string, profile: SolanaProfile) =>
    expectHonest(await verdictOf(profile), [profile]);
  test.each(named(profiles.filter(isQuick)))('%s', honest);
  test.each(named(profiles.filter((one) => !isQuick(one))))('%s', { tags: 'slow' }, honest);
});

describe('before an archive node', () => {
  const beside = async (name: string) => {
    const pair = [profileOf(name), archiveNode];
    expectHonest(await verdictOf(...pair), pair);
  };
  test.each(profiles.map(({ name }) => name))('%s', { tags: 'slow' }, beside);
});
