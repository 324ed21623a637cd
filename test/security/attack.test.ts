// @module-tag slow: attacks a server for a while
/**
 * Several attacks at once on the built program: forged cursors, clients that ask for large pages and do not read them, and
 * generated requests with every kind of nonsense. Meanwhile others search as usual.
 *
 * A few seconds by default, a minute with LANESCAN_TEST_SCALE=full.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Message } from '../../src/domain/message.ts';
import type { Store } from '../../src/store/store.ts';
import { until } from '../api/live/live-server.ts';
import type { SearchBody } from '../api/running-server.ts';
import { freePort } from '../chaos/deployment.ts';
import { buildProgram, type Running, start } from '../cli/program.ts';
import { openTestStore } from '../database.ts';
import { makeManyMessages } from '../fixtures/many-messages.ts';
import { sampleMessages } from '../fixtures/sample-messages.ts';
import { digits, evmAddress, makeMessage, makeSnapshot } from '../fixtures.ts';
import { heavyTerms, withMac, withPublicChecksum } from './forged-cursor.ts';
import { createRequestGenerator, openApiDocument, sendGenerated } from './request-generator.ts';
import { type Outcome, openLine } from './wire.ts';

const isFull = process.env.LANESCAN_TEST_SCALE === 'full';
const seed = process.env.LANESCAN_TEST_SEED ?? '1';
const ATTACK_MS = isFull ? 60_000 : 5_000;
/** Resident memory of the server, at any moment. */
const MAX_MEGABYTES = 600;

const ORDINARY_MESSAGES = 20_000;
/** Older than the others, with a payload of 30 kB: a page of 1,000 has 61 MB. */
const LARGE_MESSAGES = isFull ? 1_000 : 250;
const PAYLOAD_BYTES = 30_000;
const FORGERS = 12;
/** In the short form fewer than the server has connections to the database. */
const SLOW_READERS = isFull ? 30 : 4;
const FUZZERS = 2;
const OTHER_CLIENTS = 4;

let store: Store & { readonly url: string };
let server: Running;
let port: number;
const large: Message[] = Array.from({ length: LARGE_MESSAGES }, (_, index) =>
  makeMessage({
    number: 100_000 + index,
    sendTimestamp: new Date(Date.UTC(2024, 0, 1) + index * 1_000).toISOString(),
    data: `0x${randomBytes(PAYLOAD_BYTES).toString('hex')}`,
  }),
);

beforeAll(async () => {
  await buildProgram();
  store = await openTestStore();
  await makeManyMessages(store, ORDINARY_MESSAGES);
  for (let from = 0; from < large.length; from += 50)
    await store.apply(large.slice(from, from + 50).map(makeSnapshot));
  port = Number(await freePort());
  server = start(['serve', '--port', String(port), '--log-level', 'error'], {
    env: { DATABASE_URL: store.url },
  });
  const isReady = () =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until(isReady);
});
afterAll(async () => {
  server?.child.kill('SIGTERM');
  await server?.outcome;
  await store?.close();
});

const residentMegabytes = () =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.child.pid}/status`, 'utf8'))?.[1]) / 1000;
const bytesOf = (path: string) =>
  Buffer.from(`GET ${path} HTTP/1.1\r\nHost: lanescan.example\r\n\r\n`, 'latin1');

/** What a group of clients was answered, and answers that nobody should get. */
const createCounts = () => ({ outcomes: new Map<string, number>(), problems: [] as string[] });
type Counts = ReturnType<typeof createCounts>;

function count({ outcomes, problems }: Counts, what: string, outcome: Outcome): void {
  const name = typeof outcome === 'object' ? String(outcome.status) : outcome;
  outcomes.set(name, (outcomes.get(name) ?? 0) + 1);
  const isDeliberate =
    typeof outcome === 'object' && outcome.status === 503 && outcome.headers['retry-after'] !== undefined;
  if (typeof outcome === 'object' ? outcome.status >= 500 && !isDeliberate : outcome === 'no answer in time')
    problems.push(`${what.slice(0, 300)}: ${typeof outcome === 'object' ? outcome.body : outcome}`);
}

type IsOver = () => boolean;

/** Cursors as anybody can make them, with far more alternatives than a request can have. */
async function forge(counts: Counts, isOver: IsOver): Promise<void> {
  const payload = JSON.stringify({
    f: { q: heavyTerms(10, 6) },
    v: 'full',
    k: [Date.UTC(2027, 0, 1), digits('last')],
  });
  const line = openLine(port);
  while (!isOver()) {
    for (const cursor of [withPublicChecksum(payload), withMac(randomBytes(16), payload)]) {
      const outcome = await line.send(bytesOf(`/v2/messages?cursor=${cursor}`));
      count(counts, 'a forged cursor', outcome);
      await delay(25);
    }
  }
  line.close();
}

/** Asks for a large page and does not read it; asks again where it is cut off. */
async function readSlowly(index: number, isOver: IsOver): Promise<void> {
  while (!isOver()) {
    const before = new Date(Date.UTC(2024, 6, 1) + index).toISOString();
    const socket = connect(port, '127.0.0.1').on('error', () => undefined);
    socket.pause();
    socket.write(bytesOf(`/v2/messages?limit=1000&sentBefore=${before}`));
    while (!isOver() && !socket.closed) await delay(50);
    socket.destroy();
  }
}

/** Generated requests; exports apart, whose answers this process would have to hold. */
async function fuzz(worker: number, counts: Counts, isOver: IsOver): Promise<void> {
  const requestOf = createRequestGenerator(openApiDocument, sampleMessages, store.cursors, seed);
  const line = openLine(port);
  for (let number = worker; !isOver(); number += FUZZERS) {
    const request = requestOf(number);
    if (request.text.includes('export')) continue;
    count(counts, request.text, await sendGenerated(request, line, port));
    await delay(5);
  }
  line.close();
}

/** Searches as people make them. */
async function searchAsUsual(client: number, counts: Counts, isOver: IsOver): Promise<void> {
  const line = openLine(port);
  const ask = async (path: string): Promise<SearchBody | undefined> => {
    const outcome = await line.send(bytesOf(path));
    count(counts, path, outcome);
    if (typeof outcome === 'string') counts.problems.push(`${path}: ${outcome}`);
    await delay(20);
    return typeof outcome === 'object' && outcome.status === 200
      ? (JSON.parse(outcome.body.toString()) as SearchBody)
      : undefined;
  };
  for (let round = 0; !isOver(); round++) {
    // Another moment each time, so that nothing is answered from memory.
    const since = new Date(Date.UTC(2025, 0, 1) + (round * OTHER_CLIENTS + client) * 1_000).toISOString();
    const page = await ask(`/v2/messages?limit=20&sentAfter=${since}`);
    if (page?.pagination.cursor) await ask(`/v2/messages?limit=20&cursor=${page.pagination.cursor}`);
    await ask(`/v2/messages?status=SENT&sentAfter=${since}`);
    await ask(`/v2/messages?q=${evmAddress('nobody', round, client)}`);
  }
  line.close();
}

async function searchTogether(counts: Counts, durationMs: number): Promise<void> {
  const endAt = performance.now() + durationMs;
  const clients = Array.from({ length: OTHER_CLIENTS }, (_, client) =>
    searchAsUsual(client, counts, () => performance.now() > endAt),
  );
  await Promise.all(clients);
}

test('others are answered, and the server stays whole, while it is attacked in several ways', {
  timeout: 900_000,
}, async () => {
  const [others, forged, fuzzed, after] = [createCounts(), createCounts(), createCounts(), createCounts()];
  let isAttackOver = false;
  const isOver = () => isAttackOver;
  let megabytes = 0;
  const watch = setInterval(() => {
    megabytes = Math.max(megabytes, residentMegabytes());
  }, 50);
  await Promise.all([
    searchTogether(others, ATTACK_MS).finally(() => {
      isAttackOver = true;
    }),
    ...Array.from({ length: FORGERS }, () => forge(forged, isOver)),
    ...Array.from({ length: SLOW_READERS }, (_, index) => readSlowly(index, isOver)),
    ...Array.from({ length: FUZZERS }, (_, worker) => fuzz(worker, fuzzed, isOver)),
  ]).finally(() => clearInterval(watch));

  const shown = ({ outcomes }: Counts) => JSON.stringify(Object.fromEntries([...outcomes].sort()));
  process.stderr.write(
    `attacked for ${ATTACK_MS / 1000} s, seed ${seed}: memory at most ${Math.round(megabytes)} MB; ` +
      `others ${shown(others)}, forged ${shown(forged)}, fuzzed ${shown(fuzzed)}\n`,
  );
  expect(others.problems).toEqual([]);
  expect(forged.problems).toEqual([]);
  expect(fuzzed.problems, `seed ${seed}`).toEqual([]);
  // Rejected in any case: with 400, or with a deliberate 503 where the database is busy with the others.
  expect([...forged.outcomes.keys()].filter((status) => status !== '503')).toEqual(['400']);
  const asked = [...others.outcomes.values()].reduce((sum, answers) => sum + answers, 0);
  const served = others.outcomes.get('200') ?? 0;
  expect(served / asked).toBeGreaterThan(isFull ? 0.99 : 0);
  expect(fuzzed.outcomes.get('400') ?? 0).toBeGreaterThan(0);
  expect(server.child.exitCode).toBe(null);
  expect(megabytes).toBeLessThan(MAX_MEGABYTES);

  // Afterwards all is as before.
  await searchTogether(after, 500);
  expect([...after.outcomes.keys()]).toEqual(['200']);
});
