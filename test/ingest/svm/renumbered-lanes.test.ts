// @module-tag slow: indexes a world several times
/**
 * A router can set the sequence number of a lane back, and later to where it was. Then two messages have the same number:
 * both are recorded, nothing is reported as lost that is there, and what is lost is reported.
 */
import { describe, expect, test } from 'vitest';
import { createSolanaWorld, type SolanaWorld } from '../../solana/ccip-world.ts';
import { sepolia } from '../../solana/world-options.ts';
import { committedOnSepolia, indexWorld, lookElsewhere, recordsOf, stage } from './indexed-world.ts';

/** Each with content of its own: the number is all that tells ids of like messages apart. */
function sendSome(world: SolanaWorld, count: number): void {
  for (let sent = 0; sent < count; sent++) {
    world.send({ data: `0x0${world.truth.sends.length}` });
    world.cluster.grow(2);
  }
}

/** Numbers 1 to 5; 1 and 2 of a newer version; 6 of the former one again; 3 of the newer one. */
function renumberedWorld(): SolanaWorld {
  const world = createSolanaWorld();
  sendSome(world, 5);
  world.bumpVersion();
  world.cluster.grow(1);
  sendSome(world, 2);
  world.rollBackVersion();
  world.cluster.grow(1);
  sendSome(world, 1);
  world.bumpVersion();
  world.cluster.grow(1);
  sendSome(world, 1);
  return world;
}

test('every message is recorded, and nothing is reported as missing', async () => {
  const world = renumberedWorld();
  expect(world.truth.sends.map(({ body }) => Number(body.header.sequenceNumber))).toEqual([
    1, 2, 3, 4, 5, 1, 2, 6, 3,
  ]);
  const { store, index, differences, findings, logLines } = await indexWorld(world);
  expect(await differences()).toEqual([]);
  expect(await findings()).toEqual([]);
  expect(logLines).toEqual(
    expect.arrayContaining([expect.stringContaining('CcipVersionForDestChainVersionBumped')]),
  );
  expect(await store.index.checks.unreadableLogs(world.network.selector, world.programs.router)).toBe(3);
  // An indexer that starts again reads what it has kept once more, and comes to the same.
  await index();
  expect(await differences()).toEqual([]);
  expect(await findings()).toEqual([]);
});

describe('a transaction that a list leaves out is reported, and found at another endpoint:', () => {
  const sendOf = (index: number) => (world: SolanaWorld) => world.truth.sends[index]?.signature;
  test.each([
    ['a message whose number a later one has too', sendOf(1)],
    ['a message above all later numbers', sendOf(4)],
    ['a message whose number an earlier one has too', sendOf(6)],
    ['a message of the restored numbers', sendOf(7)],
    ['the newest message', sendOf(8)],
    ['the latest change of numbers itself', lastRenumbering],
  ])('%s', async (_, hidden) => {
    const world = renumberedWorld();
    expect(await lookElsewhere(world, hidden(world))).toMatchObject([
      { kind: 'messages-missing', subject: `${world.programs.router} ${sepolia.network.selector}` },
    ]);
  });
});

/** The transaction of the router between the last two messages. */
function lastRenumbering({ cluster, programs, truth }: SolanaWorld): string | undefined {
  const [before, after] = truth.sends.slice(-2);
  return cluster
    .signaturesFor(programs.router, { limit: 1_000, upTo: cluster.head })
    .find(({ slot }) => before && after && before.slot < slot && slot < after.slot)?.signature;
}

test('a commit from before the numbers began anew is not of the later message with the same number', async () => {
  const DAY_MS = 86_400_000;
  const world = createSolanaWorld({ startedAtMs: Date.now() - 3 * DAY_MS });
  const early = world.send();
  world.bumpVersion();
  world.cluster.grow((2 * DAY_MS) / 400);
  const late = world.send({ data: '0x1a7e' });
  const { store, index } = await stage(world);
  const at = new Date((early.blockTime + 60) * 1_000);
  await store.apply([committedOnSepolia(world, { to: 1, at })]);
  await index();
  const records = await recordsOf(store);
  expect(records.get(early.messageId)?.status).toBe('COMMITTED');
  expect(records.get(late.messageId)?.status).toBe('SOURCE_FINALIZED');
});
