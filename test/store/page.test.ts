/** Pages as JSON that is ready to go out, and the digest by which one is told from another. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Message } from '../../src/domain/message.ts';
import { parseSearch } from '../../src/domain/search-parameters.ts';
import type { PageFrame } from '../../src/store/reads/reads.ts';
import type { Store } from '../../src/store/store.ts';
import { openTestStore } from '../database.ts';
import { makeExecuted, makeMessage, makeSent, makeSnapshot } from '../fixtures.ts';

let store: Store;
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
