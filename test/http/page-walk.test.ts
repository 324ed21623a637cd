/** A walk through the pages, while a writer goes on: every message of its start exactly once. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { compareNewestFirst } from '../../src/domain/matches.ts';
import type { Message } from '../../src/domain/message.ts';
import { evmAddress, makeMessage, makeSnapshot } from '../fixtures.ts';
import { type SearchBody, startServerForTest } from './running-server.ts';

/** Many at the same moment, so that pages end in the middle of one. */
const sentAt = (number: number) =>
  new Date(Date.UTC(2026, 0, 1) + Math.floor(number / 7) * 1000).toISOString();
const crowd = (from: number, count: number, overrides: Partial<Message> = {}) =>
  Array.from({ length: count }, (_, index) =>
    makeMessage({ number: from + index, sendTimestamp: sentAt(from + index), ...overrides }),
  );

test.each([
  ['of everything', ''],
  ['of one sender, in short', `sender=${evmAddress('sender')}&view=summary`],
  ['of a filter that spreads over several indexes', `address=${evmAddress('receiver')}`],
  ['of two statuses', 'status=SENT,COMMITTED'],
])('a walk %s sees what was there at its start once, whatever arrives meanwhile', async (_what, filters) => {
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

  const seen: string[] = [];
  let cursor: string | null = null;
  let pages = 0;
  do {
    const query = cursor === null ? filters : `cursor=${cursor}`;
    const answer = await server.ask(`/v2/messages?limit=13&${query}`.replace(/&$/, ''));
    expect(answer.status).toBe(200);
    const { data, pagination } = answer.json<SearchBody>();
    expect(pagination.hasNextPage).toBe(pagination.cursor !== null);
    if (pagination.cursor !== null) expect(data).toHaveLength(13);
    seen.push(...data.map(({ messageId }) => messageId));
    ({ cursor } = pagination);
    pages++;
    // However fast the reader is, the writer gets its turn.
    const wave = written;
    while (pages % 5 === 0 && written === wave) await delay(1);
  } while (cursor !== null);
  isWalking = false;
  await writing;

  expect(pages).toBeGreaterThan(30);
  expect(written).toBeGreaterThan(5);
  expect(new Set(seen).size, 'nothing is seen twice').toBe(seen.length);
  const ofStart = new Set(start.map(({ messageId }) => messageId));
  const expected = [...start].sort(compareNewestFirst).map(({ messageId }) => messageId);
  expect(seen.filter((id) => ofStart.has(id))).toEqual(expected);
});
