/**
 * Every profile alone and in pairs: an indexer reads everything, or says that and why something is missing.
 *
 * A few run by default, the slow tests run every profile alone and some pairs, and `LANESCAN_TEST_SCALE=full` runs
 * all pairs.
 */
import { describe, expect, test } from 'vitest';
import { briefly } from '../chain/faulty-node.ts';
import type { Verdict } from '../chain/indexing.ts';
import { makeCcipWorld } from './ccip-chain.ts';
import type { EndpointProfile } from './endpoint-profile.ts';
import { PROFILE_BLOCKS, profileOf, profiles } from './endpoint-profiles.ts';
import { serveWorld } from './served-world.ts';

const MESSAGES = 29;

/** Chain `a` behind endpoints of these profiles, its counterpart behind an archive node. */
async function verdictOf(behaviours: readonly EndpointProfile[], messages = MESSAGES): Promise<Verdict> {
  const world = makeCcipWorld({ blocks: PROFILE_BLOCKS, messages, ramps: 2 });
  const { index, judge } = await serveWorld(world, behaviours);
  return judge(await index({}, { timing: { endpoints: briefly } }));
}

function expectHonest(verdict: Verdict, behaviours: readonly EndpointProfile[]): void {
  const isReadable = behaviours.every(({ alone }) => alone === undefined);
  const allowed = isReadable ? ['complete'] : ['complete', 'incomplete and said so'];
  const names = behaviours.map(({ name }) => name).join(' and ');
  expect(allowed, `${names}: ${JSON.stringify(verdict)}`).toContain(verdict.kind);
}

const quick = ['address-required', 'payment-required'];
const quickPairs = [['one-topic-unnamed', 'address-required']] as const;

describe('alone', () => {
  const isQuick = ({ name }: EndpointProfile) => quick.includes(name);
  const named = (list: readonly EndpointProfile[]) => list.map((one) => [one.name, one] as const);
  const honest = async (_: string, profile: EndpointProfile) =>
    expectHonest(await verdictOf([profile]), [profile]);
  test.each(named(profiles.filter(isQuick)))('%s', honest);
  test.each(named(profiles.filter((one) => !isQuick(one))))('%s', { tags: 'slow' }, honest);

  test.each(named(profiles.filter(({ alone }) => alone === 'stuck')))(
    '%s cannot go on, and it ends with the reason',
    { tags: 'slow' },
    async (_, profile) => {
      const { reasons } = await verdictOf([profile]);
      expect(reasons).toEqual(
        expect.arrayContaining([
          expect.stringMatching(/^geth-testnet: (?:given up: 127\.0\.0\.1|\d+ failed ranges)/),
        ]),
      );
    },
  );
});

describe('in pairs', () => {
  test.each(quickPairs)('%s and %s', async (first, second) => {
    const pair = [profileOf(first), profileOf(second)];
    expectHonest(await verdictOf(pair), pair);
  });

  const isFull = process.env.LANESCAN_TEST_SCALE === 'full';
  const { length } = profiles;
  /** All that follow in the table, or one that is some places away. */
  const partnersOf = (index: number): readonly EndpointProfile[] =>
    isFull ? profiles.slice(index + 1) : [profiles[(index + 7) % length] as EndpointProfile];
  test.each(profiles.map(({ name }, index) => [name, index] as const))(
    '%s with others',
    { tags: 'slow', timeout: isFull ? 1_800_000 : 180_000 },
    async (_, index) => {
      const first = profiles[index] as EndpointProfile;
      for (const second of partnersOf(index)) {
        // The order in which endpoints are configured matters.
        const pair = index % 2 === 0 ? [first, second] : [second, first];
        expectHonest(await verdictOf(pair), pair);
      }
    },
  );
});

test('limits that were learned are logged, once', { tags: 'slow' }, async () => {
  const { batch } = profileOf('small-batches');
  const limited: EndpointProfile = { ...profileOf('range-exceeds-limit'), ...(batch && { batch }) };
  const world = makeCcipWorld({ blocks: PROFILE_BLOCKS, messages: MESSAGES });
  const { a, index } = await serveWorld(world, [limited]);
  const { logLines } = await index();
  const exact = (text: string) =>
    logLines.filter((line) => line.startsWith(a[0]?.url.host ?? '') && line.includes(text));
  expect(exact('it takes batches of 10 calls')).toHaveLength(1);
  expect(exact('ranges of 300 blocks are tried instead')).toHaveLength(1);
});

test('answers that are cut off at a round number are noticed', { tags: 'slow' }, async () => {
  const verdict = await verdictOf([profileOf('cuts-answers')], 400);
  expect(verdict.kind, JSON.stringify(verdict).slice(0, 500)).toBe('complete');
});
