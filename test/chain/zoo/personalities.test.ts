/** Every personality alone: an indexer reads everything, or says that and why something is missing. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { openTestStore } from '../../database.ts';
import { briefly } from '../faulty-node.ts';
import { makeCcipWorld } from './ccip-chain.ts';
import { indexWorld, sourceOf } from './indexed-world.ts';
import { personalities } from './personalities.ts';
import type { Personality } from './personality.ts';
import { startProvider } from './provider.ts';
import { judge, type Verdict } from './verdict.ts';

const MESSAGES = 29;

/** Chain `a` behind endpoints of these personalities, its counterpart behind an archive node. */
async function verdictOf(...behaviours: readonly Personality[]): Promise<Verdict> {
  const world = makeCcipWorld({ blocks: 3_000, messages: MESSAGES, ramps: 2 });
  const [b, ...a] = await Promise.all([
    startProvider(world.b),
    ...behaviours.map((personality) => startProvider(world.a, { personality })),
  ]);
  onTestFinished(async () => {
    for (const provider of [b, ...a]) await provider.close();
  });
  const store = await openTestStore();
  onTestFinished(() => store.close());
  const indexed = await indexWorld(store, {
    sources: [sourceOf(world.a, a), sourceOf(world.b, [b])],
    timing: { endpoints: briefly },
    ...(behaviours.every(({ alone }) => alone === 'stuck') && {
      until: (statuses) => statuses.some(({ worker }) => worker?.problem),
    }),
  });
  return judge(world, store, indexed);
}

describe('alone', () => {
  test.each(personalities.map((personality) => [personality.name, personality] as const))(
    '%s',
    async (_name, personality) => {
      const verdict = await verdictOf(personality);
      const allowed =
        personality.alone === 'complete' ? ['complete'] : ['complete', 'incomplete and said so'];
      expect(allowed, JSON.stringify(verdict)).toContain(verdict.kind);
    },
  );
});
