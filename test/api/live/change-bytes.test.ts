// @module-tag slow: megabytes of changes; stream.test.ts is the quick pass
/** Reads of changes are bounded in bytes as well as in rows, and followers still see every change once. */
import { expect, test } from 'vitest';
import { MAX_CHANGES_BYTES } from '../../../src/store/query/history.ts';
import type { Store } from '../../../src/store/store.ts';
import { makeMessage, makeSent, makeSnapshot } from '../../fixtures.ts';
import { numbersUpTo, readStream, startServers, until } from './live-server.ts';

const COUNT = 14;
const RECORD_BYTES = 1_800_000;
/** 25 MB of records in all. */
const messages = numbersUpTo(COUNT).map((number) =>
  makeMessage({ number, data: `0x${String(number % 10).repeat(RECORD_BYTES)}` }),
);
const snapshots = messages.map((message) => makeSnapshot(message));
const ids = messages.map(({ messageId }) => messageId);

async function walk(store: Store, limit: number, maxBytes?: number) {
  /** Message ids in the order in which they were read, one list for each read. */
  const reads: string[][] = [];
  const positions: number[] = [];
  let mostBytes = 0;
  for (let from = '0'; ; ) {
    const { changes, hasMore } = await store.changesAfter(from, limit, maxBytes);
    reads.push(changes.map(({ messageId }) => messageId));
    positions.push(...changes.map(({ position }) => Number(position)));
    const bytes = changes.reduce((sum, { record }) => sum + Buffer.byteLength(record), 0);
    mostBytes = Math.max(mostBytes, bytes);
    from = changes.at(-1)?.position ?? from;
    if (!hasMore) return { reads, positions, mostBytes };
  }
}

test('a read of changes ends at its bound in bytes, says so, and a walk misses and repeats nothing', async () => {
  const [{ store }] = await startServers({});
  await store.apply(snapshots);
  const byDefault = await walk(store, 500);
  expect(byDefault.reads.flat()).toEqual(ids);
  expect(byDefault.positions).toEqual(numbersUpTo(COUNT));
  expect(byDefault.reads.map(({ length }) => length)).toEqual([4, 4, 4, 2]);
  expect(byDefault.mostBytes).toBeLessThanOrEqual(MAX_CHANGES_BYTES);

  // The first change comes in any case, or a reader would stand still before a long record.
  const oneByOne = await walk(store, 500, 1);
  expect(oneByOne.reads).toEqual(ids.map((id) => [id]));

  const byRows = await walk(store, 3);
  expect(byRows.reads.flat()).toEqual(ids);
  expect(byRows.reads.map(({ length }) => length)).toEqual([3, 3, 3, 3, 2]);
});

test('removed records count as well', async () => {
  const [{ store }] = await startServers({});
  const sent = messages.map((message) => makeSent(message));
  await store.apply(sent);
  await store.apply(
    [],
    sent.map(({ seen }) => seen),
  );
  const { reads, positions, mostBytes } = await walk(store, 500);
  expect(positions).toEqual(numbersUpTo(2 * COUNT));
  expect(reads.flat().toSorted()).toEqual([...ids, ...ids].toSorted());
  expect(mostBytes).toBeLessThanOrEqual(MAX_CHANGES_BYTES);
});

test('a stream that catches up reads no more at once than it may buffer, and brings every change once', async () => {
  const [server] = await startServers({ bufferedBytes: 2 * RECORD_BYTES + 100_000 });
  await server.store.apply(snapshots);
  let reads = 0;
  server.store.observeReads((label) => {
    if (label === 'changes') reads++;
  });
  const reader = await readStream(`${server.url}/v2/messages/stream?after=0`);
  await until(() => reader.changes.length === COUNT);
  expect(reader.positions).toEqual(numbersUpTo(COUNT));
  expect(reader.changes.map(({ data }) => data.message.messageId)).toEqual(ids);
  expect(reads).toBeGreaterThanOrEqual(COUNT / 2);
});

test('a stream that follows has every change of a transaction that takes several reads', async () => {
  const [server] = await startServers({});
  const reader = await readStream(`${server.url}/v2/messages/stream?view=summary`);
  await server.store.apply(snapshots);
  await until(() => reader.changes.length === COUNT);
  expect(reader.positions).toEqual(numbersUpTo(COUNT));
});
