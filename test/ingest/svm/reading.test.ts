/** A virtual Solana cluster is indexed over HTTP: everything that happened is there, and nothing else. */
import { describe, expect, test } from 'vitest';
import { createSolanaWorld } from '../../solana/ccip-world.ts';
import { profileOf } from '../../solana/endpoint/solana-profiles.ts';
import { addBulkNoise, createTraffic, forgeryKinds } from '../../solana/traffic.ts';
import {
  configured,
  differencesFrom,
  indexOnce,
  indexWorld,
  judge,
  openStore,
  serve,
  sourceOf,
} from './indexed-world.ts';

describe('everything that happened is there', () => {
  test.each([
    ['off-ramps found in the history of the router', false],
    ['off-ramps of the configuration', true],
  ])('with %s', async (_, isConfigured) => {
    const world = createSolanaWorld({ versionOneEvery: 3 });
    createTraffic(world, { seed: 'everything', hasTruncation: false })(150);
    const { store } = await indexWorld(world, isConfigured ? configured(world) : {});
    expect(world.truth.sends.length).toBeGreaterThan(5);
    expect(world.truth.executions.length).toBeGreaterThan(3);
    expect(await differencesFrom(world, store)).toEqual([]);
    expect(await store.index.checks.findings(world.network.selector)).toEqual([]);
  });
});

test('what only looks like a message, a commit or an execution changes nothing', async () => {
  const world = createSolanaWorld();
  const forged = forgeryKinds.map((kind) => world.forge(kind).signature);
  const { cluster, programs } = world;
  const listed = [programs.router, programs.offRamp].flatMap((program) =>
    cluster.signaturesFor(program, { upTo: cluster.head, limit: 100 }).map(({ signature }) => signature),
  );
  expect(listed).toEqual(expect.arrayContaining(forged));
  const { store } = await indexWorld(world, {});
  expect(await differencesFrom(world, store)).toEqual([]);
  expect(await store.index.checks.committedEnds(world.remotes[0]?.network.selector ?? '')).toEqual([]);
});

test.each([253_000_000_000, Number.MAX_SAFE_INTEGER])(
  'a transaction of the time %i is not believed, and another endpoint is asked',
  { tags: 'slow' },
  async (time) => {
    const world = createSolanaWorld();
    world.send();
    world.settle();
    const liar = await serve(world.cluster, {
      ...profileOf('transactions-of-the-year-9987'),
      transactions: { time },
    });
    const store = await openStore();
    const alone = await indexOnce(store, sourceOf(world, [liar]), {
      until: ([status]) => (status?.worker?.failedRanges ?? 0) > 0,
    });
    expect((await judge(world, store, alone)).kind).toBe('incomplete and said so');
    expect(alone.logLines.join()).toMatch(/getTransaction: slot \d+ has the time \d+, in the future/);
    await indexOnce(store, sourceOf(world, [liar, await serve(world.cluster)]));
    expect(await differencesFrom(world, store)).toEqual([]);
  },
);

test('noise that names the router is listed once, and failed noise is not fetched', {
  tags: 'slow',
}, async () => {
  const world = createSolanaWorld();
  const first = world.send();
  addBulkNoise(world, { count: 4_000, perSlot: 3, isFailed: true });
  const last = world.send();
  const { store, providers } = await indexWorld(world);
  const calls = (method: string) => providers[0]?.callsByMethod.get(method);
  for (const { messageId } of [first, last]) {
    expect(await store.findMessage(messageId.slice(2))).toBeDefined();
  }
  expect(calls('getTransaction')).toBeLessThan(100);
  // 4,000 entries in pages of 500, what is asked at the ends of lists, and looks at the head.
  expect(calls('getSignaturesForAddress')).toBeLessThan(150);
});
