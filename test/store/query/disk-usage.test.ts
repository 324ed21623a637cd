/** The bytes of the store by table, and the pace of its growth: what a store says of itself, and what follows from it. */
import { expect, test } from 'vitest';
import { growthOf, type ObservedMessages, readDiskUsage } from '../../../src/store/query/disk-usage.ts';
import { type Read, readWith } from '../../../src/store/reads/reads.ts';
import { tables } from '../../../src/store/schema/tables.ts';
import { isOnCluster, openTestStore } from '../../database.ts';
import { makeMessage, makeSnapshot } from '../../fixtures.ts';
import { connectForTest, countExaminedRows } from '../../postgres.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const MESSAGES = 1_200;

const onServer = { isEmbedded: false, cluster: undefined };

/** A store whose messages were sent and recorded `hoursBetween` apart, the last one now. */
async function openStoreOf(count: number, hoursBetween: number) {
  const store = await openTestStore();
  const now = Date.now();
  const messages = Array.from({ length: count }, (_, index) =>
    makeMessage({
      number: index + 1,
      sendTimestamp: new Date(now - (count - 1 - index) * hoursBetween * HOUR_MS).toISOString(),
    }),
  );
  await store.apply(messages.map(makeSnapshot));
  const client = await connectForTest(store.url);
  // In seconds: a cluster takes no function of a column that depends on the time zone.
  await client.query(
    'update history set recorded_at = to_timestamp($3::float8 - ($1 - position) * $2 * 3600)',
    [count, hoursBetween, Date.now() / 1000],
  );
  return { store, client };
}

test('a store without messages knows its size, and no pace', async () => {
  const store = await openTestStore();
  const { growth, messages, disk, databaseBytes } = await store.diskUsage();
  await store.close();
  expect({ ...growth, messages, disk }).toEqual({
    ...{ bytesPerMessage: null, recorded: null, sent: null, isLoad: false, expected: null },
    ...{ messages: 0, disk: null },
  });
  expect(databaseBytes).toBeGreaterThan(1e6);
});

test.skipIf(isOnCluster)('sizes are those of the catalogs, part by part', async () => {
  const { store, client } = await openStoreOf(50, 1);
  const { tables: sizes } = await store.diskUsage();
  const { rows } = await client.query(
    `select c.relname as table, pg_total_relation_size(c.oid)::float8 as bytes, pg_indexes_size(c.oid)::float8 as indexes
     from pg_class c where c.relname = any($1) and c.relkind = 'r'`,
    [tables],
  );
  await client.end();
  await store.close();
  expect(rows.length).toBeGreaterThan(30);
  const found = sizes.map(({ table, heap, indexes, toast }) => ({
    table,
    bytes: heap + indexes + toast,
    indexes,
  }));
  expect(new Set(found)).toEqual(new Set(rows));
  expect(sizes.find(({ table }) => table === 'message')?.heap).toBeGreaterThan(0);
});

test.skipIf(!isOnCluster)('on a cluster, sizes are those of all shards', async () => {
  const { store, client } = await openStoreOf(50, 1);
  const { tables: sizes } = await store.diskUsage();
  const { rows } = await client.query(
    `select sum(result::float8) as bytes
     from run_command_on_shards('message', 'select pg_total_relation_size(''%s'')')`,
  );
  await client.end();
  await store.close();
  expect(new Set(sizes.map(({ table }) => table))).toEqual(new Set(tables));
  const { heap, indexes, toast } = sizes.find(({ table }) => table === 'message') ?? {};
  expect(heap).toBeGreaterThan(0);
  expect(Number(heap) + Number(indexes) + Number(toast)).toBe(rows[0].bytes);
});

// The rows that shards examine are not in the plan of the coordinator.
test.skipIf(isOnCluster)(
  'the pace is that of the last week, and is found in few reads of one change each',
  async () => {
    // Of 50 days, one message an hour.
    const { store, client } = await openStoreOf(MESSAGES, 1);
    await client.query('analyze');
    const rowsRead: number[] = [];
    const read: Read = async (text, values) => {
      if (text.includes('from history')) rowsRead.push(await countExaminedRows(client, text, values));
      return readWith(client)(text, values);
    };
    const { growth, messages } = await readDiskUsage(read, onServer);
    await client.end();
    await store.close();
    expect(messages).toBe(MESSAGES);
    expect(growth.recorded?.spanMs).toBe(7 * DAY_MS);
    expect(growth.recorded?.messagesPerDay).toBeCloseTo(24, 0);
    expect(growth.sent).toMatchObject({ messagesPerDay: 24, spanMs: 7 * DAY_MS });
    expect(growth.isLoad).toBe(false);
    expect(growth.expected).toBe(growth.recorded);
    expect(growth.bytesPerMessage).toBeGreaterThan(1_000);
    expect(growth.recorded?.bytesPerDay).toBeCloseTo(
      (growth.recorded?.messagesPerDay ?? 0) * (growth.bytesPerMessage ?? 0),
    );
    // The first change, and one for each halving of 1,200 positions.
    expect(rowsRead.length).toBeGreaterThan(5);
    expect(rowsRead.length).toBeLessThanOrEqual(12);
    expect(Math.max(...rowsRead)).toBe(1);
  },
);

test('what was recorded at once and sent over weeks is a load of history', async () => {
  const { store, client } = await openStoreOf(MESSAGES, 1);
  await client.query(`update history set recorded_at = now() - interval '2 hours'`);
  const { growth } = await readDiskUsage(readWith(client), onServer);
  await client.end();
  await store.close();
  expect(growth.recorded?.messagesPerDay).toBeCloseTo(12 * MESSAGES, -2);
  expect(growth.isLoad).toBe(true);
  expect(growth.expected).toMatchObject({ messagesPerDay: 24, spanMs: 7 * DAY_MS });
});

const steady = {
  messages: 100_000,
  changes: 400_000,
  latest: { changes: 28_000, spanMs: 7 * DAY_MS },
  sent: { messages: 6_300, days: 7 },
  isReadingHistory: false,
  storeBytes: 4e8,
};

test('a change counts as its share of a message', () => {
  const { bytesPerMessage, recorded, sent, expected } = growthOf(steady);
  expect(bytesPerMessage).toBe(4_000);
  expect(recorded?.messagesPerDay).toBeCloseTo(1_000);
  expect(recorded?.bytesPerDay).toBeCloseTo(4e6);
  expect(sent).toEqual({ messagesPerDay: 900, bytesPerDay: 3.6e6, spanMs: 7 * DAY_MS });
  expect(expected).toEqual(recorded);
});

test.each<[string, Partial<ObservedMessages>, object]>([
  [
    'with less than an hour of history no pace is known',
    { latest: { changes: 9_000, spanMs: HOUR_MS - 1 } },
    { recorded: null, isLoad: false, expected: null },
  ],
  [
    'an hour is enough',
    { latest: { changes: 160, spanMs: HOUR_MS } },
    { recorded: { messagesPerDay: 960, bytesPerDay: 3.84e6, spanMs: HOUR_MS }, isLoad: false },
  ],
  [
    'with few messages their size is unknown, and the pace is not',
    { messages: 999, changes: 999 },
    {
      bytesPerMessage: null,
      recorded: { messagesPerDay: 4_000, bytesPerDay: null },
      sent: { bytesPerDay: null },
    },
  ],
  [
    'while history is read, the messages that were sent give the pace',
    { isReadingHistory: true },
    { isLoad: true, expected: { messagesPerDay: 900 } },
  ],
  [
    'while history is read, and no whole day is covered, the pace is unknown',
    { isReadingHistory: true, sent: { messages: 0, days: 0 } },
    { isLoad: true, sent: null, expected: null },
  ],
  [
    'an import of what was sent long ago is a load, after which nothing comes',
    { latest: { changes: 400_000, spanMs: DAY_MS }, sent: { messages: 0, days: 7 } },
    { isLoad: true, expected: { messagesPerDay: 0, bytesPerDay: 0 } },
  ],
  [
    'a store that began with the head today has the pace that it recorded',
    { latest: { changes: 400_000, spanMs: DAY_MS / 2 }, sent: { messages: 0, days: 0 } },
    { isLoad: false, expected: { messagesPerDay: 200_000 } },
  ],
  [
    'up to twice as fast as sent is a busy day',
    { latest: { changes: 50_400, spanMs: 7 * DAY_MS } },
    { isLoad: false, expected: { messagesPerDay: 1_800 } },
  ],
])('%s', (_, differences, expected) => {
  expect(growthOf({ ...steady, ...differences })).toMatchObject(expected);
});
