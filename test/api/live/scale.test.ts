// @module-tag slow: hundreds of readers at once
/**
 * Many readers and waiters on two servers over one database, all of them cut off again and again, while several
 * write: each sees every change once.
 *
 * LANESCAN_TEST_SCALE=full: 2,000 and 2,000, 20 reconnects each, against two processes of the built program.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../../src/store/store.ts';
import { buildProgram, configFile, start } from '../../cli/program.ts';
import { createTestDatabase } from '../../database.ts';
import { makeExecuted, makeMessage, makeSent } from '../../fixtures.ts';
import { EventReader, numbersUpTo, startServerOn, until } from './live-server.ts';

const isFull = process.env.LANESCAN_TEST_SCALE === 'full';
const size = isFull
  ? { readers: 2_000, waiters: 2_000, reconnects: 20, messages: 800, pauseMs: 400 }
  : { readers: 100, waiters: 100, reconnects: 3, messages: 160, pauseMs: 60 };
const WRITERS = 4;
const MESSAGES_PER_BATCH = 5;
/** All clients have one address here. */
const live = { streamsPerAddress: size.readers, waitersPerAddress: size.waiters };

async function startTwo(url: string): Promise<readonly string[]> {
  if (!isFull) {
    const servers = await Promise.all([startServerOn(url, live), startServerOn(url, live)]);
    return servers.map((server) => server.url);
  }
  await buildProgram();
  const args = ['serve', '--port', '0', '--config', configFile(JSON.stringify({ live }))];
  const programs = [1, 2].map(() => start(args, { env: { DATABASE_URL: url } }));
  onTestFinished(async () => {
    for (const { child } of programs) child.kill('SIGTERM');
    await Promise.all(programs.map(({ outcome }) => outcome));
  });
  return Promise.all(programs.map((program) => program.untilListening()));
}

test(`${size.readers} readers see every change once, and ${size.waiters} waiters what they wait for, through ${size.reconnects} reconnects each`, {
  timeout: isFull ? 900_000 : 600_000,
}, async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const urls = await startTwo(database.url);
  const urlOf = (index: number) => urls[index % urls.length] ?? '';
  const stores = await Promise.all(
    numbersUpTo(WRITERS).map(() => openStore({ place: { url: database.url } })),
  );
  onTestFinished(async () => void (await Promise.all(stores.map((store) => store.close()))));
  const isFailing = (number: number) => number % 3 === 0;

  const write = async (store: (typeof stores)[number], writer: number) => {
    const count = size.messages / WRITERS;
    for (let first = writer * count + 1; first <= (writer + 1) * count; first += MESSAGES_PER_BATCH) {
      const numbers = numbersUpTo(first + MESSAGES_PER_BATCH - 1, first);
      await store.apply(numbers.map((number) => makeSent(makeMessage({ number }))));
      await delay(size.pauseMs);
      await store.apply(numbers.map((number) => makeExecuted(makeMessage({ number }), !isFailing(number))));
    }
  };

  let isOver = false;
  const isFiltered = (index: number) => index % 4 === 0;
  const readers = numbersUpTo(size.readers).map(() => new EventReader());
  const reading = readers.map((reader, index) => {
    let connections = index;
    const query = isFiltered(index) ? '&status=FAILED' : '';
    return reader.follow(
      () => urlOf(connections++),
      () => isOver,
      query,
    );
  });
  const cutOff = readers.map(async (reader, index) => {
    for (let connection = 0; connection < size.reconnects; connection++) {
      await delay(size.pauseMs * (0.5 + ((index * 7 + connection * 13) % 10) / 5));
      await reader.disconnect();
    }
  });

  const wait = async (index: number) => {
    const number = 1 + (index % size.messages);
    const path = `/v2/messages/${makeMessage({ number }).messageId}?waitFor=SUCCESS,FAILED&timeoutMs=60000`;
    for (let attempt = 0; ; attempt++) {
      const patienceMs = attempt < size.reconnects ? size.pauseMs * (0.5 + (index % 10) / 10) : 90_000;
      const signal = AbortSignal.timeout(patienceMs);
      const response = await fetch(`${urlOf(index + attempt)}${path}`, { signal }).catch(() => undefined);
      const body = await response?.json().catch(() => undefined);
      // On a machine so busy, a server turns clients away, or a minute passes: they ask again.
      if (response?.headers.get('x-lanescan-wait') !== 'reached' || !body) continue;
      return expect(body).toMatchObject({ status: isFailing(number) ? 'FAILED' : 'SUCCESS' });
    }
  };

  const startedAt = performance.now();
  await Promise.all([...stores.map(write), ...numbersUpTo(size.waiters).map(wait), ...cutOff]);
  const [store] = stores;
  const end = size.messages * 2;
  expect(Number(await store?.latestPosition())).toBe(end);
  const changes = (await store?.changesAfter('0', end, Number.MAX_SAFE_INTEGER))?.changes ?? [];
  const failed = changes.filter(({ status }) => status === 'FAILED').map(({ position }) => Number(position));
  const expectedOf = (index: number) => (isFiltered(index) ? failed : numbersUpTo(end));
  await until(
    () => readers.every((reader, index) => reader.changes.length >= expectedOf(index).length),
    isFull ? 300_000 : 120_000,
  );
  const seconds = (performance.now() - startedAt) / 1000;
  isOver = true;
  await Promise.all(readers.map((reader) => reader.disconnect()));
  await Promise.all(reading);
  for (const [index, { positions }] of readers.entries()) expect(positions).toEqual(expectedOf(index));
  const events = readers.reduce((sum, { changes: seen }) => sum + seen.length, 0);
  process.stdout.write(`${events} events to ${size.readers} readers in ${seconds.toFixed(1)} s\n`);
});
