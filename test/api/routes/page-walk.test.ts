/** A walk through the pages, while a writer goes on: every message of its start exactly once, unless its send time moves. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { compareNewestFirst } from '../../../src/domain/filters/matches.ts';
import type { Message } from '../../../src/domain/message.ts';
import { evmAddress, hashOf, makeMessage, makeSent, makeSnapshot } from '../../fixtures.ts';
import { type SearchBody, startServerForTest, walkPages } from '../running-server.ts';

/** Many at the same moment, so that pages end in the middle of one. */
const sentAt = (number: number) =>
  new Date(Date.UTC(2026, 0, 1) + Math.floor(number / 7) * 1000).toISOString();
const crowd = (from: number, count: number, overrides: Partial<Message> = {}) =>
  Array.from({ length: count }, (_, index) =>
    makeMessage({ number: from + index, sendTimestamp: sentAt(from + index), ...overrides }),
  );

const CLAIM = 'a walk %s sees what was there at its start once, whatever arrives meanwhile';
test.each([
  ['of everything', ''],
  ['of one sender, in short', `sender=${evmAddress('sender')}&view=summary`],
])(CLAIM, walkWhileWriting);
test.each([
  ['of a filter that spreads over several indexes', `address=${evmAddress('receiver')}`],
  ['of two statuses', 'status=SENT,COMMITTED'],
])(CLAIM, { tags: 'slow' }, walkWhileWriting);

async function walkWhileWriting(_what: string, filters: string): Promise<void> {
  const start = crowd(1000, 400);
  const server = await startServerForTest(start);

  let isWalking = true;
  let written = 0;
  const write = async () => {
    while (isWalking) {
      // Newer ones, older ones, and ones of the very moments that are being read; and old ones change.
      const wave = written++;
      await server.store.apply(
        [
          ...crowd(2000 + wave * 5, 5),
          ...crowd(500 - wave, 1),
          ...crowd(10_000 + wave * 5, 5, { sendTimestamp: sentAt(1000 + ((wave * 37) % 400)) }),
          ...start.slice(wave, wave + 3).map((message) => ({ ...message, status: 'COMMITTED' as const })),
        ].map(makeSnapshot),
      );
    }
  };
  const writing = write();

  let pages = 0;
  const { ids: seen } = await walkPages(server, `limit=13&${filters}`, {
    async check(answer) {
      const { data, pagination } = answer.json<SearchBody>();
      if (pagination.cursor !== null) expect(data).toHaveLength(13);
      pages++;
      // However fast the reader is, the writer gets its turn.
      const wave = written;
      while (pages % 5 === 0 && written === wave) await delay(1);
    },
  });
  isWalking = false;
  await writing;

  expect(pages).toBeGreaterThan(30);
  expect(written).toBeGreaterThan(5);
  expect(new Set(seen).size, 'nothing is seen twice').toBe(seen.length);
  const ofStart = new Set(start.map(({ messageId }) => messageId));
  const expected = [...start].sort(compareNewestFirst).map(({ messageId }) => messageId);
  expect(seen.filter((id) => ofStart.has(id))).toEqual(expected);
}

test('a message whose send time a reorg moves across the position of a walk is shown twice or not at all, others once', async () => {
  const messages = crowd(1, 30).map((message, index) => ({ ...message, sendTimestamp: minute(index) }));
  const server = await startServerForTest();
  await server.store.apply(messages.map((message) => makeSent(message)));

  // Five pages of six, newest first: numbers 29 to 24, 23 to 18, and so on. Two are read.
  const ids = messages.map(({ messageId }) => messageId);
  const first = await walkPages(server, 'limit=6', { pages: 2 });
  expect(first.ids).toEqual(ids.slice(18).reverse());

  // The same transaction comes back in another block, at another time.
  const reorganise = async (index: number, sendTimestamp: string) => {
    const before = makeSent(messages[index] as Message);
    const after = makeSent(
      { ...(messages[index] as Message), sendTimestamp },
      { blockHash: hashOf('new block', index), at: sendTimestamp },
    );
    const { network, blockHash } = before.seen;
    expect(await server.store.apply([after], [{ network, blockHash }])).toMatchObject({ updated: 1 });
  };
  await reorganise(28, minute(4.5)); // shown already, and now in a page that is to come
  await reorganise(3, minute(28.5)); // not shown yet, and now in a page that has been read
  await reorganise(27, minute(24.5)); // moves within what has been read
  await reorganise(10, minute(6.5)); // moves within what is to come

  const rest = await walkPages(server, `limit=6&cursor=${first.cursor}`);
  expect(rest.cursor).toBeNull();
  const times = (index: number) => [...first.ids, ...rest.ids].filter((id) => id === ids[index]).length;
  expect(ids.flatMap((_, index) => (times(index) === 1 ? [] : [[index, times(index)]]))).toEqual([
    [3, 0],
    [28, 2],
  ]);
  expect(rest.ids).toEqual(
    [17, 16, 15, 14, 13, 12, 11, 9, 8, 7, 10, 6, 5, 28, 4, 2, 1, 0].map((index) => ids[index]),
  );

  // A walk that begins now shows everything once, and the history has told of each move.
  expect((await walkPages(server, 'limit=6')).ids.toSorted()).toEqual(ids.toSorted());
  const { changes } = await server.store.changesAfter(String(messages.length), 10);
  expect(changes.map(({ messageId }) => messageId)).toEqual([28, 3, 27, 10].map((index) => ids[index]));
});

const minute = (number: number) => new Date(Date.UTC(2026, 0, 1) + number * 60_000).toISOString();
