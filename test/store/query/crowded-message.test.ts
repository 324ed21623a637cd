// @module-tag slow: stores 60,000 attempts and as many changes
/** A message that was attempted 60,000 times: whatever reads it or adds to it examines a bounded number of rows. */
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Executed, ExecutionDetails } from '../../../src/domain/facts.ts';
import { MAX_ATTEMPTS, MAX_HISTORY_ROWS } from '../../../src/domain/filters/query.ts';
import { parseSearch } from '../../../src/domain/filters/search-parameters.ts';
import { singleNodeWrites } from '../../../src/store/cluster/write-coordinator.ts';
import { readExecutions, readExecutionsOf } from '../../../src/store/query/attempts.ts';
import { readFailedMessages } from '../../../src/store/query/failed-messages.ts';
import { readChangesAfter, readMessageHistory } from '../../../src/store/query/history.ts';
import { searchSql } from '../../../src/store/query/search.ts';
import { type Read, readWith } from '../../../src/store/reads/reads.ts';
import { renderSql } from '../../../src/store/sql.ts';
import type { Store } from '../../../src/store/store.ts';
import { applyFacts } from '../../../src/store/write/apply.ts';
import { KEPT_ATTEMPTS } from '../../../src/store/write/earlier-attempts.ts';
import { openTestStore } from '../../database.ts';
import { makeExecuted, makeExecutionDetails, makeMessage, makeSent } from '../../fixtures.ts';
import { connectForTest, connectTo, countExaminedRows } from '../../postgres.ts';

const ATTEMPTS = 60_000;
/** As many as are stored in the usual way; the others are copies of those. */
const STORED = 1_000;
const FIRST_BLOCK = 1_000_000;

const message = makeMessage({ number: 1 });
const id = message.messageId.slice(2);
const failure = (block: number): [Executed, ExecutionDetails] => [
  makeExecuted(message, false, FIRST_BLOCK + block),
  makeExecutionDetails(message, '0x12', FIRST_BLOCK + block),
];

let store: Store & { url: string };
let client: pg.Client;
/** Rows that the statements have examined since the last reset. */
let examined = 0;
const read: Read = async (text, values) => {
  examined += await countExaminedRows(client, text, values);
  return readWith(client)(text, values);
};

beforeAll(async () => {
  store = await openTestStore();
  client = await connectTo(store.url);
  await client.query(`set lanescan.schema = '1000000'`);
  await store.apply([makeSent(message)]);
  for (let block = 0; block < STORED; block += 1) await store.apply(failure(block));
  await client.query(
    `insert into earlier_attempt
     select network, block_number - 1000 * n, seen_at, log_index, kind, message_id,
       substring(sha256(fact_id || n::text::bytea) for 16), block_hash, transaction, body
     from earlier_attempt, generate_series(1, $1::int) n`,
    [Math.ceil(ATTEMPTS / (STORED - KEPT_ATTEMPTS))],
  );
  await client.query(
    `insert into history (position, recorded_at, change, status, previous_status, ready, message_id, attempt_fact)
     select s.position + n, now(), 2, 6, 6, true, $1, substring(sha256(n::text::bytea) for 16)
     from store s, generate_series(1, $2::int) n`,
    [Buffer.from(id, 'hex'), ATTEMPTS],
  );
  await client.query('update store set position = (select max(position) from history)');
  await client.query('analyze');
}, 300_000);
afterAll(async () => {
  await client.end();
  await store.close();
});

/** Of a message in `fact`: its sending, both facts of each attempt, and those of the last batch. */
const MOST_FACTS = 2 * KEPT_ATTEMPTS + 20;

describe('a message with 60,000 failed attempts', () => {
  const examinedBy = async (work: () => Promise<unknown>) => {
    examined = 0;
    await work();
    return examined;
  };

  it.each<[string, number, () => Promise<unknown>]>([
    ['its attempts', 2 * MOST_FACTS, () => readExecutions(read, id)],
    ['an export', 2 * MOST_FACTS, () => readExecutionsOf(read, [id])],
    ['its history', MOST_FACTS + 8 * MAX_HISTORY_ROWS, () => readMessageHistory(read, id)],
    ['the report of failures', 2 * MOST_FACTS, () => readFailedMessages(read, 100)],
    // Each change looks for its attempt, and for the details of it, among the facts of the message.
    ['three changes', 3 * 2 * MOST_FACTS, () => readChangesAfter(read, '900', 3)],
  ])('%s examine a bounded number of rows', async (_, most, work) => {
    const rows = await examinedBy(work);
    expect(rows).toBeGreaterThan(0);
    expect(rows).toBeLessThanOrEqual(most);
  });

  it('its attempts and its history say that there are more', async () => {
    const executions = await readExecutions(readWith(client), id);
    expect(executions?.isTruncated).toBe(true);
    expect(executions?.facts.filter(({ kind }) => kind === 'Executed')).toHaveLength(MAX_ATTEMPTS);
    const history = await readMessageHistory(readWith(client), id);
    expect(history?.isTruncated).toBe(true);
    expect(history?.entries).toHaveLength(MAX_HISTORY_ROWS);
    expect(history?.entries.at(-1)?.position).toBe(await store.latestPosition());
  });

  it.each([STORED - 1, 0])('a search by the transaction of an attempt examines few rows', async (block) => {
    const [{ seen }] = failure(block);
    const query = parseSearch([['destTransactionHash', seen.transactionHash ?? '']]);
    const { text, values } = renderSql(searchSql(query));
    const rows = await examinedBy(() => read(text, values));
    // The copies of an earlier attempt have its transaction.
    expect(rows).toBeLessThanOrEqual(300);
    expect((await store.search(query)).records).toHaveLength(1);
  });

  it('one more attempt reads a bounded number of rows', async () => {
    let rows = 0;
    // The counters of a connection have what its transactions before have read, too.
    const writer = await connectForTest(store.url);
    await writer.query(`set lanescan.schema = '1000000'`);
    await applyFacts(writer, singleNodeWrites, failure(STORED), [], async () => {
      const { rows: counted } = await writer.query(
        `select sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::integer as rows from pg_stat_xact_user_tables`,
      );
      rows = counted[0].rows;
    });
    expect(rows).toBeGreaterThan(KEPT_ATTEMPTS);
    expect(rows).toBeLessThanOrEqual(4 * MOST_FACTS);
  });
});
