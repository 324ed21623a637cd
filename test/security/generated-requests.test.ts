// @module-tag slow: thousands of generated requests
/**
 * Bad input over HTTP: requests made from the OpenAPI document by a seed, over real sockets. Whatever is asked, the
 * answer is a documented one, comes, and shows the right rows.
 *
 * A few thousand requests by default, 100,000 with LANESCAN_TEST_SCALE=full; LANESCAN_TEST_SEED chooses others.
 */
import { pino } from 'pino';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type RunningServer, startServer } from '../api/running-server.ts';
import { digestOfTables } from '../database.ts';
import { sampleMessages } from '../fixtures/sample-messages.ts';
import { evmAddress, makeMessage } from '../fixtures.ts';
import { connectTo } from '../postgres.ts';
import { createJudge } from './judge.ts';
import {
  createRequestGenerator,
  openApiDocument as document,
  type GeneratedRequest,
  sendGenerated,
} from './request-generator.ts';
import { openLine } from './wire.ts';

const isFull = process.env.LANESCAN_TEST_SCALE === 'full';
const seed = process.env.LANESCAN_TEST_SEED ?? '1';
const REQUESTS = isFull ? 100_000 : 3_000;
/** No more than exports may run at once: what is rejected beyond that is another test's. */
const LINES = 4;
const ENOUGH_PROBLEMS = 5;

/** Requests that once got a wrong answer. They always run. */
const regressions: readonly GeneratedRequest[] = [];

/** Many of one sender and one moment, so that pages end in the middle of both. */
const crowd = Array.from({ length: 60 }, (_, index) =>
  makeMessage({
    number: 1000 + index,
    sendTimestamp: new Date(Date.UTC(2026, 0, 2) + Math.floor(index / 9) * 1000).toISOString(),
    sender: evmAddress('crowd', index % 3),
    status: index % 2 === 0 ? 'SUCCESS' : 'FAILED',
  }),
);
const messages = [...sampleMessages, ...crowd];

let server: RunningServer;
/** Lines of the log that are not one JSON object each, or tell of a fault of ours. */
const badLogLines: string[] = [];
let logLines = 0;

beforeAll(async () => {
  const write = (line: string) => {
    logLines++;
    const isOneLine = line.indexOf('\n') === line.length - 1;
    const { level } = JSON.parse(line);
    if ((!isOneLine || level >= 50) && badLogLines.length < 20) badLogLines.push(line.slice(0, 2_000));
  };
  server = await startServer(messages, { log: pino({ level: 'info' }, { write }) });
});
afterAll(() => server.close());

async function digest(): Promise<readonly unknown[]> {
  const client = await connectTo(server.store.url);
  return digestOfTables(client).finally(() => client.end());
}

async function sendAll(requests: Iterator<GeneratedRequest>) {
  const problemWith = createJudge(document, messages, server.store.cursors);
  const counts = new Map<string, number>();
  const problems: string[] = [];
  const work = async () => {
    const line = openLine(server.port);
    for (let next = requests.next(); !next.done; next = requests.next()) {
      const request = next.value;
      const outcome = await sendGenerated(request, line, server.port);
      const what = typeof outcome === 'object' ? String(outcome.status) : outcome;
      counts.set(what, (counts.get(what) ?? 0) + 1);
      const problem = problemWith(request, outcome);
      if (problem !== undefined) problems.push(`${JSON.stringify(request.text.slice(0, 3_000))} ${problem}`);
      if (problems.length >= ENOUGH_PROBLEMS) break;
    }
    line.close();
  };
  await Promise.all(Array.from({ length: LINES }, work));
  return { counts, problems };
}

test('every generated request gets a documented answer with the right rows, and changes nothing', {
  timeout: 1_800_000,
}, async () => {
  const requestOf = createRequestGenerator(document, messages, server.store.cursors, seed);
  const before = await digest();
  const { counts, problems } = await sendAll(
    (function* () {
      yield* regressions;
      for (let number = 0; number < REQUESTS; number++) yield requestOf(number);
    })(),
  );
  expect(problems, `seed ${seed}`).toEqual([]);
  expect(badLogLines).toEqual([]);
  expect(await digest()).toEqual(before);

  const sorted = JSON.stringify(Object.fromEntries([...counts].sort()));
  process.stderr.write(`${REQUESTS} generated requests, seed ${seed}: ${sorted}\n`);
  // Otherwise it would have tried much less than it says.
  for (const status of ['200', '400', '404', '405', '406', '414']) {
    expect(counts.get(status) ?? 0, status).toBeGreaterThan(REQUESTS / 1_000);
  }
  expect(counts.get('closed without an answer') ?? 0).toBeLessThan(REQUESTS / 100);
  expect(logLines).toBeGreaterThan(REQUESTS * 0.95);
});
