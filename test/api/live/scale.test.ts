// @module-tag slow: hundreds of readers at once
/**
 * Many readers and waiters on two servers over one database, all of them cut off again and again, while several
 * write: each sees every change once.
 *
 * LANESCAN_TEST_SCALE=full: 2,000 and 2,000, 20 reconnects each, against two processes of the built program.
 */
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { openStore } from '../../../src/store/store.ts';
import { buildProgram, start } from '../../cli/program.ts';
import { createTestDatabase } from '../../database.ts';
import { makeExecuted, makeMessage, makeSent } from '../../fixtures.ts';
import { numbersUpTo, startServerOn, until } from './live-server.ts';

const isFull = process.env.LANESCAN_TEST_SCALE === 'full';
const size = isFull
  ? { readers: 2_000, waiters: 2_000, reconnects: 20, messages: 800, pauseMs: 400 }
  : { readers: 100, waiters: 100, reconnects: 3, messages: 160, pauseMs: 60 };
const WRITERS = 4;
const MESSAGES_PER_BATCH = 5;

/** Each client has an address of its own, or shares it with few: places are limited by address. */
const addressOf = (client: number) => `127.0.${Math.floor(client / 200) % 5}.${10 + (client % 200)}`;

function get(
  url: string,
  client: number,
  headers: Record<string, string>,
  signal?: AbortSignal,
): Promise<[ClientRequest, IncomingMessage]> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      url,
      { agent: false, localAddress: addressOf(client), headers, ...(signal && { signal }) },
      (response) => resolve([request, response]),
    );
    request.on('error', reject);
    request.end();
  });
}

/** Reconnect delay of a client that was rejected or lost its connection. */
const COME_BACK_MS = 500;

/** How often clients were turned away, by status, or lost the connection, by error: said at the end. */
const turnedAway = new Map<string, number>();
function countTurnedAway(why: string): void {
  turnedAway.set(why, (turnedAway.get(why) ?? 0) + 1);
}

async function ask(url: string, client: number, signal: AbortSignal) {
  const again = { outcome: 'timeout', status: '' };
  try {
    const [request, response] = await get(url, client, {}, signal);
    request.on('error', () => undefined);
    const body = JSON.parse((await response.toArray()).join('')) as { status: string };
    // On a machine so busy, servers turn clients away, and a message may not be there within a minute.
    if (response.statusCode === 200) {
      return { outcome: response.headers['x-lanescan-wait'], status: body.status };
    }
    countTurnedAway(`waiter ${response.statusCode}`);
  } catch (error) {
    if (signal.aborted) return undefined;
    countTurnedAway(`waiter ${(error as NodeJS.ErrnoException).code}`);
  }
  await delay(COME_BACK_MS);
  return again;
}

/** Reads ids alone: to parse millions of records would measure the reader. */
class IdReader {
  readonly positions: number[] = [];
  #lastEventId: string;
  #request: ClientRequest | undefined;

  constructor(from: string) {
    this.#lastEventId = from;
  }

  async connect(url: string, client: number): Promise<void> {
    this.#request = undefined;
    const opened = await get(url, client, { 'Last-Event-ID': this.#lastEventId }).catch(
      (error: NodeJS.ErrnoException) => countTurnedAway(`reader ${error.code}`),
    );
    const [request, response] = opened ?? [];
    if (!request || response?.statusCode !== 200) {
      if (response) countTurnedAway(`reader ${response.statusCode}`);
      response?.resume();
      await delay(COME_BACK_MS);
      return this.connect(url, client);
    }
    request.on('error', () => undefined);
    this.#request = request;
    // A connection that the reader did not cut itself is made anew.
    response.once('close', () => {
      if (this.#request !== request) return;
      countTurnedAway('reader cut off');
      this.connect(url, client);
    });
    let text = '';
    response.setEncoding('latin1');
    response.on('error', () => undefined);
    response.on('data', (chunk: string) => {
      // Cut off: what is still on its way is lost.
      if (this.#request !== request) return;
      text += chunk;
      const end = text.lastIndexOf('\n\n');
      if (end < 0) return;
      for (const block of text.slice(0, end).split('\n\n')) {
        const id = /^id: (\d+)$/m.exec(block)?.[1];
        if (id !== undefined) this.#lastEventId = id;
        if (/^event: (created|updated|removed)$/m.test(block)) this.positions.push(Number(id));
      }
      text = text.slice(end + 2);
    });
  }

  disconnect(): void {
    const request = this.#request;
    this.#request = undefined;
    request?.destroy();
  }
}

async function startTwo(databaseUrl: string): Promise<readonly string[]> {
  if (!isFull) {
    const servers = await Promise.all([startServerOn(databaseUrl), startServerOn(databaseUrl)]);
    return servers.map(({ url }) => url);
  }
  await buildProgram();
  const setting = { env: { DATABASE_URL: databaseUrl, LANESCAN_LOG_LEVEL: 'info' } };
  const programs = [1, 2].map(() => start(['serve', '--port', '0'], setting));
  onTestFinished(async () => {
    for (const { child } of programs) child.kill('SIGTERM');
    await Promise.all(programs.map(({ outcome }) => outcome));
  });
  const said = await Promise.all(
    programs.map((program) => program.untilSaid(/listens on (http:\/\/[\d.:]+)/)),
  );
  return said.map(([, url = '']) => url);
}

test(`${size.readers} readers see every change once, and ${size.waiters} waiters what they wait for, through ${size.reconnects} reconnects each`, {
  timeout: isFull ? 900_000 : 60_000,
}, async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const urls = await startTwo(database.url);
  const store = await openStore({ place: { url: database.url } });
  const writers = await Promise.all(
    numbersUpTo(WRITERS).map(() => openStore({ place: { url: database.url } })),
  );
  onTestFinished(async () => {
    await Promise.all([store, ...writers].map((each) => each.close()));
  });
  const urlOf = (index: number) => urls[index % urls.length] ?? '';

  let isWriting = true;
  const write = async () => {
    const perWriter = size.messages / WRITERS;
    await Promise.all(
      writers.map(async (writer, index) => {
        for (let first = 1; first <= perWriter; first += MESSAGES_PER_BATCH) {
          const batch = numbersUpTo(MESSAGES_PER_BATCH).map((n) =>
            makeMessage({ number: index * perWriter + first + n - 1 }),
          );
          await writer.apply(batch.map((message) => makeSent(message)));
          await delay(size.pauseMs);
          await writer.apply(
            batch.map((message) => makeExecuted(message, Number(message.sequenceNumber) % 3 > 0)),
          );
        }
      }),
    );
    isWriting = false;
  };

  const readers = numbersUpTo(size.readers).map(() => new IdReader('0'));
  const isFiltered = (index: number) => index % 4 === 0;
  const read = async (reader: IdReader, index: number) => {
    const query = isFiltered(index) ? '?view=summary&status=FAILED' : '?view=summary';
    for (let connection = 0; connection <= size.reconnects; connection++) {
      reader.disconnect();
      await reader.connect(`${urlOf(index + connection)}/v2/messages/stream${query}`, index);
      await delay(size.pauseMs * (0.5 + ((index * 7 + connection * 13) % 10) / 5));
    }
  };

  let reached = 0;
  const wait = async (index: number) => {
    const message = makeMessage({ number: 1 + (index % size.messages) });
    for (let attempt = 0; ; attempt++) {
      const url = `${urlOf(index + attempt)}/v2/messages/${message.messageId}?waitFor=SUCCESS,FAILED&timeoutMs=60000`;
      const patience = new AbortController();
      const answer = ask(url, index, patience.signal);
      if (attempt < size.reconnects) {
        const cutOff = delay(size.pauseMs * (0.5 + (index % 10) / 10)).then(() => patience.abort());
        if (!(await answer.catch(() => undefined))) continue;
        await cutOff;
      }
      const { outcome, status } = (await answer) ?? {};
      // On a server this busy a minute may pass; a waiting client asks again.
      if (outcome === 'timeout') continue;
      expect({ outcome, status }).toEqual({
        outcome: 'reached',
        status: Number(message.sequenceNumber) % 3 > 0 ? 'SUCCESS' : 'FAILED',
      });
      reached++;
      return;
    }
  };

  const startedAt = performance.now();
  const reading = Promise.all(readers.map(read));
  const waiting = Promise.all(numbersUpTo(size.waiters).map(wait));
  await delay(200);
  await write();
  expect(isWriting).toBe(false);
  await Promise.all([reading, waiting]);
  expect(reached).toBe(size.waiters);

  const end = Number(await store.latestPosition());
  expect(end).toBe(size.messages * 2);
  const { changes } = await store.changesAfter('0', end, Number.MAX_SAFE_INTEGER);
  const failed = changes.filter(({ status }) => status === 'FAILED').map(({ position }) => Number(position));
  const expectedOf = (index: number) => (isFiltered(index) ? failed : numbersUpTo(end));
  await until(
    () => readers.every(({ positions }, index) => positions.length >= expectedOf(index).length),
    isFull ? 300_000 : 30_000,
  );
  const seconds = (performance.now() - startedAt) / 1000;
  for (const [index, { positions }] of readers.entries()) expect(positions).toEqual(expectedOf(index));
  for (const reader of readers) reader.disconnect();
  const events = readers.reduce((sum, { positions }) => sum + positions.length, 0);
  process.stdout.write(`${events} events to ${size.readers} readers in ${seconds.toFixed(1)} s\n`);
  process.stdout.write(`turned away: ${JSON.stringify(Object.fromEntries(turnedAway))}\n`);
});
