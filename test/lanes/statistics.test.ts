/** What every write keeps equals what a recount of the messages finds. */
import fc from 'fast-check';
import type pg from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Fact } from '../../src/domain/facts.ts';
import type { Message } from '../../src/domain/message.ts';
import type { Store } from '../../src/store/store.ts';
import { emptyTables, openTestStore } from '../database.ts';
import {
  canonical,
  chainFactsAbout,
  evmAddress,
  factsAbout,
  makeMessage,
  makeSent,
  makeSnapshot,
  makeSubject,
  networkInfo,
  seenOn,
  sepolia,
} from '../fixtures.ts';
import { connectTo } from '../postgres.ts';
import { keptStatistics, recount } from './recount.ts';

const isFull = process.env.LANESCAN_TEST_SCALE === 'full';

let store: Store & { readonly url: string };
let client: pg.Client;

beforeAll(async () => {
  store = await openTestStore();
  client = await connectTo(store.url, { options: '-c timezone=UTC' });
});
afterAll(async () => {
  await client.end();
  await store.close();
});
beforeEach(() => emptyTables(client));

const arbitrum = networkInfo('ethereum-testnet-sepolia-arbitrum-1');

const orphanOf = (message: Message, blockNumber: number) => ({
  network: message.sourceNetworkInfo.chainSelector,
  blockHash: seenOn(message.sourceNetworkInfo, blockNumber).blockHash,
});

/**
 * Two lanes, two on-ramps on one of them, one sequence number given twice, two messages sent at the same time,
 * one sent on another day.
 */
const first = makeSubject('1.6.0', 1);
const subjects: readonly Message[] = [
  first,
  makeSubject('1.7.0', 2),
  makeSubject('1.6.0', 3),
  canonical({ ...makeSubject('1.6.0', 4), sequenceNumber: '3' }),
  canonical({ ...makeSubject(null, 5), onramp: evmAddress('another on-ramp') }),
  canonical({ ...makeSubject('1.6.0', 6), sendTimestamp: makeSubject('1.6.0', 3).sendTimestamp }),
  canonical({ ...makeSubject('1.6.0', 7), sendTimestamp: '2025-12-31T23:59:59.999Z' }),
  makeMessage({ number: 8, destNetworkInfo: arbitrum }),
];

/** Hostile or broken: a record that contradicts its own earlier place. */
const contradictions = fc.constantFrom<Fact>(
  makeSnapshot(canonical({ ...first, sequenceNumber: '9' })),
  makeSnapshot(canonical({ ...first, onramp: evmAddress('another on-ramp') })),
  makeSnapshot(makeMessage({ number: 1, destNetworkInfo: arbitrum, messageId: first.messageId })),
);

const sentAndUnsent = fc.constantFrom(...subjects).map((subject): Fact => makeSent(subject));
const anyFact = fc.oneof(
  { arbitrary: sentAndUnsent, weight: 4 },
  { arbitrary: fc.constantFrom(...subjects.slice(0, 2)).chain(factsAbout), weight: 3 },
  // Only what chains tell can be taken back: a message that an import told of stays.
  { arbitrary: fc.constantFrom(...subjects.slice(2)).chain(chainFactsAbout), weight: 6 },
  { arbitrary: contradictions, weight: 1 },
);
const anyOrphan = fc
  .tuple(fc.constantFrom(...subjects), fc.constantFrom(0, 2))
  .map(([subject, later]) => orphanOf(subject, subject.sendBlockNumber + later));
const anyBatch = fc.record({
  facts: fc.array(anyFact, { maxLength: 10 }),
  orphaned: fc.oneof(
    { arbitrary: fc.constant([]), weight: 1 },
    { arbitrary: fc.array(anyOrphan, { minLength: 1, maxLength: 8 }), weight: 2 },
  ),
});

test('after any facts in any batches, with reorgs, removals and doubled numbers, statistics equal a recount', {
  tags: 'slow',
  timeout: isFull ? 600_000 : 300_000,
}, async () => {
  let removed = 0;
  let updated = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(anyBatch, { minLength: 2, maxLength: 8 }), async (batches) => {
      await emptyTables(client);
      for (const { facts, orphaned } of batches) {
        const report = await store.apply(facts, orphaned);
        removed += report.removed;
        updated += report.updated;
        expect(await keptStatistics(client)).toEqual(await recount(client));
      }
    }),
    { numRuns: isFull ? 1_000 : 40 },
  );
  // Or else the property has proved little.
  expect({ removed, updated }).toEqual({
    removed: expect.toSatisfy((n) => n >= 20),
    updated: expect.toSatisfy((n) => n >= 20),
  });
});

describe('runs of sequence numbers', () => {
  const numbered = (number: number, sequenceNumber = number) =>
    canonical({ ...makeMessage({ number }), sequenceNumber: String(sequenceNumber) });
  const runs = async () =>
    (await client.query('select from_sequence, to_sequence from lane_run order by 1')).rows.map(
      ({ from_sequence, to_sequence }) => `${from_sequence}…${to_sequence}`,
    );
  const send = (...numbers: readonly number[]) =>
    store.apply(numbers.map((number) => makeSent(numbered(number))));
  const unsend = (...numbers: readonly number[]) =>
    store.apply(
      [],
      numbers.map((number) => orphanOf(numbered(number), numbered(number).sendBlockNumber)),
    );

  test('merge into one, in whatever order and batches the numbers come', { tags: 'slow' }, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.shuffledSubarray(
          Array.from({ length: 24 }, (_, i) => i),
          { minLength: 1 },
        ),
        fc.integer({ min: 1, max: 24 }),
        async (numbers, size) => {
          await emptyTables(client);
          for (let at = 0; at < numbers.length; at += size) await send(...numbers.slice(at, at + size));
          expect(await keptStatistics(client)).toEqual(await recount(client));
        },
      ),
      { numRuns: isFull ? 300 : 12 },
    );
    await emptyTables(client);
    for (const number of [5, 1, 3]) await send(number);
    expect(await runs()).toEqual(['1…1', '3…3', '5…5']);
    await send(2, 4);
    expect(await runs()).toEqual(['1…5']);
  });

  test('split where a reorg takes a number away: inside, at either end, and all of it', async () => {
    await send(...Array.from({ length: 10 }, (_, i) => i + 1));
    await unsend(5);
    expect(await runs()).toEqual(['1…4', '6…10']);
    await unsend(1, 10, 8);
    expect(await runs()).toEqual(['2…4', '6…7', '9…9']);
    await unsend(2, 3, 4);
    expect(await runs()).toEqual(['6…7', '9…9']);
    await unsend(6, 7, 9);
    expect(await runs()).toEqual([]);
    expect((await client.query('select from lane_onramp')).rowCount).toBe(0);
  });

  test('keep a number that another message still has', async () => {
    await store.apply([makeSent(numbered(1)), makeSent(numbered(2)), makeSent(numbered(7, 2))]);
    await unsend(2);
    expect(await runs()).toEqual(['1…2']);
    await unsend(7);
    expect(await runs()).toEqual(['1…1']);
  });

  test('hold numbers up to the largest uint64, and number zero', async () => {
    const largest = 2n ** 64n - 1n;
    await store.apply(
      [0n, 1n, largest - 1n, largest].map((sequenceNumber, i) =>
        makeSent(canonical({ ...makeMessage({ number: i + 1 }), sequenceNumber: String(sequenceNumber) })),
      ),
    );
    expect(await runs()).toEqual(['0…1', `${largest - 1n}…${largest}`]);
    const { lanes } = await store.lanes({
      now: new Date(),
      deliveredSince: '2026-01-01',
      namedRanges: 5,
      limit: 5,
    });
    expect(lanes[0]?.onramps[0]?.completeness).toMatchObject({
      present: '4',
      missing: String(largest + 1n - 4n),
      missingRanges: [{ from: '2', to: String(largest - 2n) }],
    });
  });
});

test('a lane is described by its newest message, also after a reorg has taken that away', async () => {
  const older = makeMessage({ number: 1, routerAddress: evmAddress('old router'), version: '1.5.0' });
  const newer = makeMessage({ number: 2, routerAddress: evmAddress('new router') });
  const ends = {
    sourceChainSelector: sepolia.chainSelector,
    destChainSelector: older.destNetworkInfo.chainSelector,
  };
  await store.apply([makeSent(newer), makeSent(older)]);
  expect(await store.laneIdentity(ends)).toMatchObject({ routerAddress: newer.routerAddress });
  await store.apply([], [orphanOf(newer, newer.sendBlockNumber)]);
  expect(await store.laneIdentity(ends)).toMatchObject({ routerAddress: older.routerAddress });
  await store.apply([], [orphanOf(older, older.sendBlockNumber)]);
  expect(await store.laneIdentity(ends)).toBeUndefined();
});
