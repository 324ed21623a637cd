// @module-tag slow: rebuilds every derived table; apply.test.ts is the quick pass
/** Derived rows that disagree with the records are found, and made anew from them. */
import type pg from 'pg';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { parseSearch } from '../../../src/domain/filters/search-parameters.ts';
import type { DerivedReport } from '../../../src/store/derived/derived-rows.ts';
import type { Store } from '../../../src/store/store.ts';
import { lanescan } from '../../cli/program.ts';
import { openTestStore } from '../../database.ts';
import {
  fuji,
  makeExecuted,
  makeMessage,
  makeSent,
  makeSnapshot,
  makeToken,
  sepolia,
} from '../../fixtures.ts';
import { keptStatistics, recount } from '../../lanes/recount.ts';
import { connectTo } from '../../postgres.ts';

let store: Store & { readonly url: string };
let client: pg.Client;
const signal = new AbortController().signal;

/** More than a batch would be slow here; the sizes of batches are covered by the upgrade test. */
const messages = Array.from({ length: 40 }, (_, index) => {
  const number = index + 1;
  const isBack = number % 5 === 0;
  return makeMessage({
    number,
    // A hole at 13, and two days.
    sequenceNumber: String(number < 13 ? number : number + 1),
    sendTimestamp: `2026-01-0${1 + (number % 2)}T10:00:${String(number % 60).padStart(2, '0')}.000Z`,
    tokenAmounts:
      number % 4 === 0 ? [] : [makeToken(isBack ? fuji : sepolia, isBack ? sepolia : fuji, 'LINK')],
    ...(isBack && { sourceNetworkInfo: fuji, destNetworkInfo: sepolia }),
    status: number % 3 === 0 ? 'FAILED' : 'SUCCESS',
    deliveryTime: number * 1_000,
  });
});

beforeEach(async () => {
  store = await openTestStore();
  client = await connectTo(store.url, { options: '-c timezone=UTC' });
  await store.apply(messages.map(makeSnapshot));
  const onChain = makeMessage({ number: 50 });
  await store.apply([makeSent(onChain)]);
  await store.apply([makeExecuted(onChain, true)]);
});
afterEach(async () => {
  await client.end();
  await store.close();
});

const found = ({ disagreements }: DerivedReport) =>
  Object.fromEntries(disagreements.map(({ what, count }) => [what, count]));

test('what writes keep agrees with the records', async () => {
  const report = await store.derived.compare({ signal });
  expect(report).toEqual({ messages: 41, disagreements: [], unchecked: [] });
  const sample = await store.derived.sample();
  expect(sample).toMatchObject({ disagreements: [], unchecked: [] });
  expect(sample.messages).toBeGreaterThan(20);
});

const SOME = '(select message_id from message_token order by message_id limit 3)';

describe.each<[damage: string, statement: string, expected: Record<string, number>]>([
  [
    'tokens that a migration lost',
    `delete from message_token where message_id in ${SOME}`,
    { 'messages whose token rows disagree with their records': 3 },
  ],
  [
    'tokens of a message that is not there',
    `insert into message_token (message_id, token_index, sort_key, source_selector, dest_selector, source_token, dest_token,
       source_pool, sender_beginning, receiver_beginning)
     select '\\xff', token_index, sort_key, source_selector, dest_selector, source_token, dest_token, source_pool,
       sender_beginning, receiver_beginning
     from message_token limit 1`,
    { 'messages whose token rows disagree with their records': 1 },
  ],
  [
    'tokens on another lane',
    `update message_token set dest_selector = 7 where message_id in ${SOME}`,
    { 'messages whose token rows disagree with their records': 3 },
  ],
  [
    'columns that are not those of the record',
    `update message set sender = '\\x01', finality = 77 where message_id in ${SOME}`,
    { 'messages whose columns disagree with their records': 3 },
  ],
  ['a total that is too high', 'update lane_total set messages = messages + 1', { 'rows of lane_total': 5 }],
  ['a day that is missing', `delete from day_total where day = '2026-01-02'`, { 'rows of day_total': 4 }],
  ['a lane that never was', 'insert into lane_total values (1, 2, 0, false, 9)', { 'rows of lane_total': 1 }],
  [
    'runs that hide a hole',
    `delete from lane_run; insert into lane_run select source_selector, dest_selector, onramp, 1, 99 from lane_onramp`,
    {},
  ],
  [
    'an on-ramp with another newest message and description',
    `update lane_onramp set newest_message = (select message_id from message order by sent_at limit 1),
       description = '{}', present = 0`,
    {},
  ],
  ['an on-ramp that is missing', 'delete from lane_onramp', {}],
  [
    'delivery times that are not those of the messages',
    `update lane_delivery set histogram = '[3,4]' where day = '2026-01-01'`,
    { 'rows of lane_delivery': 2 },
  ],
  [
    'delivery times of a day without messages',
    `insert into lane_delivery select source_selector, dest_selector, '2020-01-01', '[1,1]' from lane_delivery limit 1`,
    { 'rows of lane_delivery': 1 },
  ],
  [
    'a position that is not that of the latest change',
    `update message set position = position + 1000 where message_id in ${SOME}`,
    { 'messages whose position is not that of their latest change': 3 },
  ],
  [
    'a store that is behind its history',
    'update store set position = 5',
    { 'position of the store that is not the latest in the history': 1 },
  ],
  [
    'messages without history',
    `delete from history where message_id in ${SOME}`,
    {
      'messages whose position is not that of their latest change': 3,
      'positions that the history lacks or has twice': 3,
    },
  ],
])('%s', (_damage, statement, expected) => {
  test('are found, and made anew', async () => {
    const before = await snapshot();
    await client.query(statement);
    const report = await store.derived.compare({ signal });
    expect(report.disagreements).not.toEqual([]);
    expect(found(report)).toMatchObject(expected);

    const version = await store.version();
    expect((await store.derived.repair({ signal })).disagreements).not.toEqual([]);
    expect(await store.derived.compare({ signal })).toMatchObject({ disagreements: [] });
    expect(await snapshot()).toEqual(before);
    expect(await keptStatistics(client)).toEqual(await recount(client));
    // Servers that keep answers see that something has changed.
    expect(await store.version()).not.toBe(version);
  });
});

/** All rows that a repair may write, but for the revision, which it raises. */
async function snapshot(): Promise<unknown> {
  const tables = ['message', 'message_token', 'lane_run', 'lane_onramp', 'store'];
  const rowsOf: Record<string, unknown> = {};
  for (const table of tables) {
    const { rows } = await client.query(`select t::text as row from ${table} t order by 1`);
    rowsOf[table] = rows.map(({ row }) => row);
  }
  const history = await client.query(
    'select position, encode(message_id, $1) as id, status, ready from history order by 1',
    ['hex'],
  );
  return { ...rowsOf, history: history.rows };
}

test('what only the history knew is said to be lost', async () => {
  await client.query('delete from history where position = (select min(position) from history)');
  await client.query(
    'update history set position = 5000 where position = (select max(position) from history)',
  );
  const report = await store.derived.repair({ signal });
  const gaps = { what: 'positions that the history lacks or has twice', isRepairable: false };
  expect(report.disagreements).toContainEqual(expect.objectContaining(gaps));
});

test('doctor finds it, repair mends it, and both say what they did', async () => {
  const env = { DATABASE_URL: store.url };
  const token = messages[0]?.tokenAmounts[0]?.sourceTokenAddress ?? '';
  const query = parseSearch(Object.entries({ sourceTokenAddress: token, limit: '100' }));
  const byToken = async () => (await store.search(query)).records.length;
  const all = await byToken();
  await client.query(`delete from message_token`);
  const { code, stdout } = await lanescan(['doctor', '--port', '0'], { env });
  expect(stdout).toMatch(
    /✗ Derived rows: \d+ messages whose token rows disagree .*\n {2}→ Run `lanescan repair`/,
  );
  expect(stdout).toMatch(
    /✓ Derived rows: a sample of \d+ messages compared .*\(--deep compares everything\)/,
  );
  expect(code).toBe(1);

  const dry = await lanescan(['repair', '--dry-run'], { env });
  expect(dry.stdout).toMatch(/^Compared 41 messages .*\ncan be repaired: 30 messages whose token rows/);
  expect(dry.code).toBe(1);
  expect(await byToken()).toBe(0);

  const repaired = await lanescan(['repair'], { env });
  expect(repaired.stdout).toMatch(/^Compared 41 messages .*\nrepaired: 30 messages whose token rows/);
  expect(repaired.code).toBe(0);
  expect(await byToken()).toBe(all);
  const deep = await lanescan(['doctor', '--deep', '--port', '0'], { env });
  expect(deep.stdout).toContain(
    '✓ Derived rows: all 41 messages compared with their records, statistics and history too',
  );
  expect(deep.code).toBe(0);
});

test('a repair that is interrupted has changed nothing by halves, and can be run again', async () => {
  await client.query('delete from message_token; delete from day_total');
  const stopping = new AbortController();
  const attempt = store.derived.repair({ signal: stopping.signal, advance: () => stopping.abort() });
  await expect(attempt).rejects.toThrow();
  expect(found(await store.derived.compare({ signal }))).toMatchObject({ 'rows of day_total': 8 });
  await store.derived.repair({ signal });
  expect(await store.derived.compare({ signal })).toMatchObject({ disagreements: [] });
});
