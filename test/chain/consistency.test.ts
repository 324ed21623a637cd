/** Silence is not absence: what the contracts count is compared with what was read, and a difference is loud. */
import { describe, expect, onTestFinished, test } from 'vitest';
import type { Store } from '../../src/store/store.ts';
import { openTestStore } from '../database.ts';
import { type CcipWorld, makeCcipWorld } from './zoo/ccip-chain.ts';
import { differencesFrom, indexWorld, sourceOf } from './zoo/indexed-world.ts';
import { archiveNode, type Personality } from './zoo/personality.ts';
import { type Provider, startProvider } from './zoo/provider.ts';

/** Old logs are gone, and nothing says so. */
const pruned: Personality = {
  ...archiveNode,
  name: 'pruned-in-silence',
  logs: { kept: { blocks: 600, answer: 'empty' } },
  alone: 'incomplete',
};

async function provide(world: CcipWorld, ofA: readonly Personality[]) {
  const a: Provider[] = [];
  for (const personality of ofA) a.push(await startProvider(world.a, { personality }));
  const b = await startProvider(world.b);
  onTestFinished(async () => {
    for (const provider of [...a, b]) await provider.close();
  });
  return { a, b };
}

async function testStore(): Promise<Store> {
  const store = await openTestStore();
  onTestFinished(() => store.close());
  return store;
}

const findingsOf = async (store: Store, world: CcipWorld) =>
  (await store.index.checks.findings(world.a.network.selector)).map(
    ({ kind, detail }) => `${kind}: ${detail}`,
  );

describe('an endpoint that has pruned old logs in silence', () => {
  test('alone is loudly incomplete', async () => {
    const world = makeCcipWorld({ blocks: 3_000, messages: 200 });
    const { a, b } = await provide(world, [pruned]);
    const store = await testStore();
    const { notices, isUpToDate } = await indexWorld(store, {
      sources: [sourceOf(world.a, a), sourceOf(world.b, [b])],
    });
    expect(isUpToDate).toBe(true);
    const findings = await findingsOf(store, world);
    expect(findings).toContainEqual(
      expect.stringMatching(/^registrations-missing: Router .* names the on-ramp/),
    );
    expect(findings).toContainEqual(
      expect.stringMatching(/^messages-missing: On-ramp .* has sent 200 messages .* were not found/),
    );
    expect(notices).toContainEqual(expect.stringMatching(/were not found in its history.*archive node/));
  });

  test('beside a good one comes to everything', async () => {
    const world = makeCcipWorld({ blocks: 3_000, messages: 200, ramps: 2 });
    const { a, b } = await provide(world, [pruned, archiveNode]);
    const store = await testStore();
    await indexWorld(store, { sources: [sourceOf(world.a, a), sourceOf(world.b, [b])] });
    expect(await differencesFrom(world, store)).toEqual([]);
    expect(await findingsOf(store, world)).toEqual([]);
  });
});
