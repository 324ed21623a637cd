/** Pages: the JSON of their records, their digest, and the same bytes as the driver gives, also beside replicas. */
import type pg from 'pg';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { parseSearch } from '../../../src/domain/filters/search-parameters.ts';
import type { Message } from '../../../src/domain/message.ts';
import { searchSql } from '../../../src/store/query/search.ts';
import type { Page, PageFrame } from '../../../src/store/reads/reads.ts';
import { renderSql } from '../../../src/store/sql.ts';
import { openStore, type Store } from '../../../src/store/store.ts';
import { isOnCluster, openTestStore } from '../../database.ts';
import { makeExecuted, makeMessage, makeSent, makeSnapshot, makeVerifier } from '../../fixtures.ts';
import { connectTo } from '../../postgres.ts';

let store: Awaited<ReturnType<typeof openTestStore>>;
beforeEach(async () => {
  store = await openTestStore();
});
afterEach(() => store.close());

const pageOf = (limit: number, frame?: PageFrame) =>
  store.search(parseSearch([['limit', String(limit)]]), frame);
const messages = Array.from({ length: 4 }, (_, number) => makeMessage({ number, status: 'SENT' }));

test('a page is an array of its records, or has them in the frame that is asked for', async () => {
  const frame = { head: '{"ä":[', tail: (cursor: string | null) => `],"ö":${JSON.stringify(cursor)}}` };
  expect((await pageOf(3)).json.toString()).toBe('[]');
  expect((await pageOf(3, frame)).json.toString()).toBe('{"ä":[],"ö":null}');

  await store.apply(messages.map(makeSnapshot));
  for (const limit of [1, 3, 4, 10]) {
    const page = await pageOf(limit);
    expect(page.records).toHaveLength(Math.min(limit, 4));
    expect(page.json.toString()).toBe(`[${page.records.join(',')}]`);
    const framed = await pageOf(limit, frame);
    expect(framed.records).toEqual(page.records);
    expect(JSON.parse(framed.json.toString())).toEqual({
      ä: page.records.map((record) => JSON.parse(record)),
      ö: page.cursor,
    });
  }
});

test('its digest changes with its records, with what is behind them, and with nothing else', async () => {
  const frame = { head: '', tail: String };
  const digest = async (limit = 2) => (await pageOf(limit, frame)).digest;
  const [first, second, third, fourth] = [0, 1, 2, 3].map((number) =>
    makeMessage({ number, status: 'SENT' }),
  ) as [Message, Message, Message, Message];
  const seen = [await digest()];
  const expectAnother = async () => {
    seen.push(await digest());
    expect(new Set(seen).size).toBe(seen.length);
    expect(await digest()).toBe(seen.at(-1));
  };

  await store.apply([makeSent(second), makeSent(third)]);
  await expectAnother();
  // One more page behind it: the same records, and a cursor.
  const { records } = await pageOf(2);
  await store.apply([makeSent(first)]);
  expect((await pageOf(2)).records).toEqual(records);
  await expectAnother();
  await store.apply([makeExecuted(third, true)]);
  await expectAnother();
  await store.apply([makeSent(fourth)]);
  await expectAnother();
  // Behind this page, and there was something before.
  await store.apply([makeExecuted(first, true)]);
  expect(await digest()).toBe(seen.at(-1));
  expect(new Set([await digest(1), await digest(2), await digest(3), await digest(9)]).size).toBe(4);

  const summary = await store.search(parseSearch([['view', 'summary']]), frame);
  const otherFrame = await pageOf(20, { ...frame, head: '[' });
  const plain = await pageOf(20, frame);
  expect(plain.cursor).toBe(null);
  expect(new Set([plain, summary, otherFrame].map((page) => page.digest)).size).toBe(3);
});

describe.runIf(!isOnCluster)('a page has the records as the driver reads them, also beside replicas', () => {
  const frame = { head: '{"é":[', tail: (cursor: string | null) => `],"€":${JSON.stringify(cursor)}}` };
  let besideReplicas: Store;
  let driver: pg.Client;
  beforeEach(async () => {
    // Beside replicas every row has more columns.
    besideReplicas = await openStore({ place: { url: store.url }, replicas: [store.url] });
    driver = await connectTo(store.url);
  });
  afterEach(async () => {
    await driver.end();
    await besideReplicas.close();
  });

  async function expectSamePages(parameters: Readonly<Record<string, string>>): Promise<Page> {
    const query = parseSearch(Object.entries(parameters), store.cursors);
    const { rows } = await driver.query({ ...renderSql(searchSql(query)), rowMode: 'array' });
    const page = await store.search(query, frame);
    expect(page.records.join()).toBe(
      rows
        .slice(0, page.records.length)
        .map(([, record]) => record)
        .join(),
    );
    expect(page.records.length < rows.length).toBe(page.cursor !== null);
    expect(page.json.toString()).toBe(`{"é":[${page.records.join()}],"€":${JSON.stringify(page.cursor)}}`);
    const other = await besideReplicas.search(query, frame);
    expect(other.json.equals(page.json)).toBe(true);
    expect([other.digest, other.cursor]).toEqual([page.digest, page.cursor]);
    return page;
  }

  test('of every length, in both views', { tags: 'slow' }, async () => {
    await expectSamePages({});
    const verifiers = { items: [makeVerifier('Zoë, 验证者 🦊')], optionalThreshold: 0 };
    const many = Array.from({ length: 130 }, (_, number) =>
      makeMessage({ number, ...(number % 3 === 0 && { version: '2.0.0', verifiers }) }),
    );
    await store.apply(many.map(makeSnapshot));
    for (const limit of ['1', '20', '100', '101', '129', '130', '1000']) {
      for (const view of ['full', 'summary']) await expectSamePages({ limit, view });
    }
    expect((await expectSamePages({ limit: '130' })).json.toString()).toContain('验证者 🦊');
    await expectSamePages({ messageId: `0x${'0'.repeat(64)}` });
  });
});
