/** A message that was attempted again and again: what one more attempt costs, and that nothing of the others is lost. */
import type pg from 'pg';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { attemptsOf, lastAttempt } from '../../../src/domain/attempts.ts';
import type { Executed, ExecutionDetails, Fact } from '../../../src/domain/facts.ts';
import { MAX_HISTORY_ROWS } from '../../../src/domain/filters/query.ts';
import { parseSearch } from '../../../src/domain/filters/search-parameters.ts';
import { foldFacts } from '../../../src/domain/fold.ts';
import { type Message, wireRecord } from '../../../src/domain/message.ts';
import type { Store } from '../../../src/store/store.ts';
import { KEPT_ATTEMPTS } from '../../../src/store/write/earlier-attempts.ts';
import { openTestStore } from '../../database.ts';
import { makeExecuted, makeExecutionDetails, makeMessage, makeSent } from '../../fixtures.ts';
import { connectTo } from '../../postgres.ts';

let store: Store & { url: string };
let client: pg.Client;

beforeEach(async () => {
  store = await openTestStore();
  client = await connectTo(store.url);
});
afterEach(async () => {
  await client.end();
  await store.close();
});

const message = makeMessage({ number: 1 });
const sent = makeSent(message);
const FIRST_BLOCK = 5_000;
const failure = (block: number): [Executed, ExecutionDetails] => [
  makeExecuted(message, false, block),
  makeExecutionDetails(message, `0x${block.toString(16).padStart(8, '0')}`, block),
];
/** In consecutive blocks. */
const failures = (count: number, first = FIRST_BLOCK): Fact[] =>
  Array.from({ length: count }, (_, index) => failure(first + index)).flat();

const stored = async () => (await store.findMessage(message.messageId.slice(2)))?.record;
const record = async () => JSON.parse((await stored()) ?? 'null') as Message;
const executions = async () => {
  const found = await store.messageExecutions(message.messageId.slice(2));
  if (!found) throw new Error('The message is not stored.');
  const attempts = attemptsOf(JSON.parse(found.record) as Message, found.facts, found.removed);
  return { attempts, isTruncated: found.isTruncated, last: lastAttempt(attempts) };
};
const factCount = async () => {
  const { rows } = await client.query('select count(*)::integer from fact');
  return rows[0].count as number;
};
/** Of the message, its attempts with two facts each, and of a block that is cut by the limit. */
const MOST_FACTS = 1 + 2 * KEPT_ATTEMPTS;

describe('a message with thousands of failed attempts', () => {
  const MANY = 3_000;

  it('has as many facts to read for the next one as a message with some hundred', async () => {
    await store.apply([sent, ...failures(MANY)]);
    expect(await factCount()).toBeLessThanOrEqual(MOST_FACTS);
    for (const block of [MANY, MANY + 1]) {
      const [executed, details] = failure(FIRST_BLOCK + block);
      await store.apply([executed, details]);
      expect(await factCount()).toBeLessThanOrEqual(MOST_FACTS);
      expect(await record()).toMatchObject({
        status: 'FAILED',
        receiptTransactionHash: executed.seen.transactionHash,
      });
      expect((await executions()).last).toMatchObject({ returnData: details.returnData });
    }
    expect((await store.derived.compare({ signal: new AbortController().signal })).disagreements).toEqual([]);
  });

  it('says that there are more attempts than it lists, and is found by each of them', async () => {
    await store.apply([sent]);
    await store.apply(failures(MANY));
    const { attempts, isTruncated, last } = await executions();
    expect(isTruncated).toBe(true);
    expect(attempts).toHaveLength(100);
    expect(last?.blockNumber).toBe(FIRST_BLOCK + MANY - 1);
    const history = await store.messageHistory(message.messageId.slice(2));
    expect(history?.isTruncated).toBe(true);
    expect(history?.facts.length).toBeLessThanOrEqual(MAX_HISTORY_ROWS);

    for (const block of [0, 1, MANY / 2, MANY - 1]) {
      const [{ seen }] = failure(FIRST_BLOCK + block);
      const query = parseSearch([['destTransactionHash', seen.transactionHash ?? '']]);
      expect((await store.search(query)).records).toHaveLength(1);
    }
    const [failed] = await store.failedMessages(10);
    expect(failed?.details).toEqual(failure(FIRST_BLOCK + MANY - 1)[1]);
  });

  it('is succeeded by one that succeeds, whenever that is learned', async () => {
    const success = makeExecuted(message, true, FIRST_BLOCK + 10);
    const details = makeExecutionDetails(message, '0x', FIRST_BLOCK + 10);
    await store.apply([sent, ...failures(MANY, FIRST_BLOCK + 20)]);
    await store.apply([success, details]);
    const receipt = { status: 'SUCCESS', receiptTransactionHash: success.seen.transactionHash };
    expect(await record()).toMatchObject(receipt);
    await store.apply(failures(10, FIRST_BLOCK + MANY + 20));
    expect(await record()).toMatchObject(receipt);
    await store.apply([], [success.seen]);
    expect(await record()).toMatchObject({
      status: 'FAILED',
      receiptTransactionHash: failure(FIRST_BLOCK + MANY + 29)[0].seen.transactionHash,
    });
  });

  it('shows an earlier one again where a reorganisation removed all later ones', async () => {
    await store.apply([sent, ...failures(MANY)]);
    const left = 700;
    const orphaned = failures(MANY - left, FIRST_BLOCK + left).map((fact) => (fact as Executed).seen);
    await store.apply([], orphaned);
    const [executed, details] = failure(FIRST_BLOCK + left - 1);
    expect(await record()).toMatchObject({
      status: 'FAILED',
      receiptTransactionHash: executed.seen.transactionHash,
    });
    expect((await store.failedMessages(1))[0]?.details).toEqual(details);
    expect(await factCount()).toBeLessThanOrEqual(MOST_FACTS);

    await store.apply(
      [],
      failures(left).map((fact) => (fact as Executed).seen),
    );
    expect(await record()).toMatchObject({ status: 'SENT', receiptTransactionHash: null });
    expect(await factCount()).toBe(1);
  });

  it('changes nothing when its blocks are read again', async () => {
    await store.apply([sent, ...failures(MANY)]);
    const before = await stored();
    const report = await store.apply([sent, ...failures(MANY)]);
    expect(report).toEqual({ created: 0, updated: 0, removed: 0, unchanged: 1 });
    expect(await stored()).toBe(before);
    expect(await factCount()).toBeLessThanOrEqual(MOST_FACTS);
  });

  it('is tidied by its next fact where an earlier version has stored all of them as facts', async () => {
    await store.apply([sent, ...failures(MANY)]);
    await client.query(`set lanescan.schema = '1000000'`);
    await client.query(
      `with moved as (delete from earlier_attempt returning *)
       insert into fact (message_id, fact_id, kind, network, block_number, seen_at, log_index, block_hash, transaction, body)
       select message_id, fact_id, kind, network, block_number, seen_at, log_index, block_hash, transaction, body from moved`,
    );
    expect(await factCount()).toBe(1 + 2 * MANY);
    await store.apply(failures(1, FIRST_BLOCK + MANY));
    expect(await factCount()).toBeLessThanOrEqual(MOST_FACTS);
    expect((await record()).receiptTransactionHash).toBe(failure(FIRST_BLOCK + MANY)[0].seen.transactionHash);
  });
});

it('keeps all attempts of the oldest block that it keeps', async () => {
  const crowd = Array.from({ length: 2 * KEPT_ATTEMPTS }, (_, logIndex) => {
    const [executed] = failure(FIRST_BLOCK);
    return { ...executed, seen: { ...executed.seen, logIndex } };
  });
  await store.apply([sent, ...failures(10, FIRST_BLOCK - 10), ...crowd]);
  expect(await factCount()).toBe(1 + crowd.length);
});

it('an attempt that a change brought is read with the change after it has become an earlier one', async () => {
  await store.apply([sent]);
  await store.apply(failure(FIRST_BLOCK));
  await store.apply(failures(KEPT_ATTEMPTS + 1, FIRST_BLOCK + 1));
  const [, change] = (await store.changesAfter('0', 10)).changes;
  const [executed, details] = failure(FIRST_BLOCK);
  expect(change?.attempt).toEqual({ executed, details, removedAt: null });
  await store.apply([], [executed.seen]);
  const [, after] = (await store.changesAfter('0', 10)).changes;
  expect(after?.attempt).toMatchObject({ executed, details, removedAt: expect.any(String) });
});

it('the record is the fold of all facts that stand, in any order, repeated, grouped and taken back', async () => {
  // A fixed sequence, so that a failure can be repeated.
  let state = 1;
  const below = (limit: number) => {
    state = (state * 48_271) % 0x7fff_ffff;
    return state % limit;
  };
  const observed = (fact: Fact) => (fact as Executed).seen;
  const standing = new Map<string, Fact>();
  let mostEarlier = 0;
  await store.apply([sent]);
  for (let step = 0; step < 60; step++) {
    const base = FIRST_BLOCK + below(900);
    const isReorganised = below(10) === 0;
    const orphaned = isReorganised
      ? [...standing.values()].map(observed).filter(({ blockNumber }) => blockNumber >= base)
      : [];
    const news = [
      ...failures(below(120), isReorganised ? base - 150 : base),
      ...(below(8) === 0 ? [makeExecuted(message, true, base - 1)] : []),
    ].filter((fact) => !orphaned.some(({ blockHash }) => blockHash === observed(fact).blockHash));
    for (const [key, fact] of standing)
      if (orphaned.some(({ blockHash }) => blockHash === observed(fact).blockHash)) standing.delete(key);
    for (const fact of news) standing.set(JSON.stringify(fact), fact);

    await store.apply(news, orphaned);
    const expected = foldFacts([sent, ...standing.values()]);
    expect(await stored()).toBe(expected && wireRecord(expected).json);
    const { rows } = await client.query('select count(*)::integer as earlier from earlier_attempt');
    expect((await factCount()) + rows[0].earlier).toBe(1 + standing.size);
    mostEarlier = Math.max(mostEarlier, rows[0].earlier);
  }
  expect(mostEarlier).toBeGreaterThan(KEPT_ATTEMPTS);
});
