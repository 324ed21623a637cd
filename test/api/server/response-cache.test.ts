/** The response cache: a repeated request costs the database very little, and is never older than a write. */
import { randomBytes } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type Coding, compress } from '../../../src/api/server/compression.ts';
import { type CacheableResponse, createResponseCache } from '../../../src/api/server/response-cache.ts';
import { openStore } from '../../../src/store/store.ts';
import { hashOf, makeMessage, makeSnapshot } from '../../fixtures.ts';
import {
  type RunningServer,
  type SearchBody,
  startServerForTest,
  startSimulatedServer,
} from '../running-server.ts';

/** Counts what a server asks its database from now on. */
function countReads(server: RunningServer): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  onTestFinished(
    server.store.observeReads((label) => {
      counts[label] = (counts[label] ?? 0) + 1;
    }),
  );
  return counts;
}

async function idsAt(server: RunningServer, path = '/v2/messages'): Promise<readonly string[]> {
  const answer = await server.ask(path);
  expect(answer.status, answer.text).toBe(200);
  return answer.json<SearchBody>().data.map(({ messageId }) => messageId);
}

test('a repeated request is searched for twice, and different requests cost no read of the version', async () => {
  const server = await startServerForTest([makeMessage({ number: 1 })]);
  const reads = countReads(server);
  for (let i = 0; i < 50; i++) await idsAt(server);
  // The first is not cached; the second is cached; the rest read the version.
  expect(reads).toEqual({ search: 2, version: 49 });
  for (let limit = 1; limit <= 50; limit++) await idsAt(server, `/v2/messages?limit=${limit}`);
  expect(reads).toEqual({ search: 52, version: 49 });
});

test('a URL of more than 1,000 characters is answered without the cache', { tags: 'slow' }, async () => {
  const server = await startServerForTest([makeMessage({ number: 1 })]);
  const reads = countReads(server);
  const path = (length: number) => '/v2/messages?messageId='.padEnd(length, `${hashOf('nobody')},`);
  const [short, long] = [path(23 + 14 * 67 - 1), path(23 + 15 * 67 - 1)];
  expect([short.length <= 1_000, long.length > 1_000]).toEqual([true, true]);
  for (let i = 0; i < 5; i++) await idsAt(server, long);
  expect(reads).toEqual({ search: 5 });
  for (let i = 0; i < 5; i++) await idsAt(server, short);
  expect(reads).toEqual({ search: 7, version: 4 });
});

test('a crowd shares one look and one search', async () => {
  const server = await startServerForTest([makeMessage({ number: 1 })]);
  await idsAt(server);
  const reads = countReads(server);
  const [first, ...others] = await Promise.all(Array.from({ length: 60 }, () => server.ask('/v2/messages')));
  for (const { text, headers } of others)
    expect([text, headers.etag]).toEqual([first?.text, first?.headers.etag]);
  expect(reads.search).toBe(1);
  expect(reads.version).toBeLessThan(60);
});

test('the next answer after an acknowledged write has it, from any writer and for any number of clients', {
  tags: 'slow',
}, async () => {
  const server = await startServerForTest();
  const elsewhere = await openStore({ place: { url: server.store.url } });
  onTestFinished(() => elsewhere.close());
  let isOver = false;
  const crowd = Array.from({ length: 2 }, async () => {
    let longest = 0;
    while (!isOver) {
      const { length } = await idsAt(server, '/v2/messages?limit=1000');
      // Nobody ever sees less than before.
      expect(length).toBeGreaterThanOrEqual(longest);
      longest = length;
    }
  });
  const known: string[] = [];
  for (let number = 1; number <= 30; number++) {
    const message = makeMessage({ number });
    await (number % 2 === 0 ? server.store : elsewhere).apply([makeSnapshot(message)]);
    known.push(message.messageId);
    expect(await idsAt(server, '/v2/messages?limit=1000')).toHaveLength(known.length);
    expect([...(await idsAt(server, '/v2/messages?limit=1000'))].sort()).toEqual([...known].sort());
  }
  isOver = true;
  await Promise.all(crowd);
});

test('a simulated store that begins anew is not taken for what it was at the same position', {
  tags: 'slow',
}, async () => {
  const server = await startSimulatedServer([makeMessage({ number: 1 })]);
  onTestFinished(() => server.close());
  for (let i = 0; i < 3; i++) await idsAt(server);
  await server.store.reset();
  const other = makeMessage({ number: 2 });
  await server.store.apply([makeSnapshot(other)]);
  expect(await idsAt(server)).toEqual([other.messageId]);
});

const answerOf = (text: string, bytes = 10): CacheableResponse => ({
  body: Buffer.alloc(bytes, text),
  validator: text,
});

test('what is kept stays within its bounds, and what was not asked for longest goes first', async () => {
  const made: string[] = [];
  // Room for two bodies, and for what goes with them.
  const cache = createResponseCache(async () => '1', 250_000);
  const ask = (question: string) =>
    cache.get(question, async () => {
      made.push(question);
      return answerOf(question, 100_000);
    });
  for (const question of ['a', 'a', 'b', 'b']) await ask(question);
  await ask('a');
  for (const question of ['c', 'c']) await ask(question);
  made.length = 0;
  for (const question of ['a', 'c', 'b']) await ask(question);
  expect(made).toEqual(['b']);
});

describe('what is counted', () => {
  setFlagsFromString('--expose-gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const memory = () => {
    for (let i = 0; i < 3; i++) collectGarbage();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  /** As a request does that takes the answer in this coding. */
  const take = async (answer: CacheableResponse, coding: Coding) => {
    if (!answer.compressed?.[coding]) answer.onCompressed?.(coding, await compress(answer.body, coding));
  };
  const capacity = 32 * 1024 * 1024;

  for (const [what, count, bytes, codings] of [
    ['many small answers', 20_000, 120, []],
    ['many small answers in all codings', 8_000, 1_100, ['br', 'gzip']],
    ['pages in all codings', 2_000, 40_000, ['br', 'gzip']],
  ] as const) {
    test(`is what the memory holds, and stays below the capacityBytes: ${what}`, {
      tags: 'release',
    }, async () => {
      const cache = createResponseCache(async () => '1', capacity);
      const before = memory();
      for (let number = 0; number < count; number++) {
        // Long URLs, each a text of its own.
        const question = `/v2/messages?q=${randomBytes(100).toString('hex')}`;
        for (let times = 0; times < 2; times++) {
          const answer = await cache.get(question, async () => {
            const body = Buffer.allocUnsafeSlow(bytes);
            const half = randomBytes(bytes / 4).toString('hex');
            body.write(half + half);
            const headers = { Link: `<?cursor=${number}>; rel="next"` };
            return { body, validator: String(number), headers };
          });
          for (const coding of codings) await take(answer, coding);
        }
      }
      const grown = memory() - before;
      expect(cache.bytes).toBeLessThanOrEqual(capacity + 2.1 * 1024 * 1024);
      expect(cache.bytes).toBeGreaterThan(grown / 2);
      expect(grown).toBeLessThan(2 * capacity);
    });
  }
});

test('an answer that could not be made is not kept, and one whose version nobody tells is made anew', async () => {
  let version: string | undefined = '1';
  let fails = true;
  const cache = createResponseCache(async () => version);
  let made = 0;
  const ask = () =>
    cache.get('question', async () => {
      if (fails) throw new Error('no');
      return answerOf(String(++made));
    });
  for (let i = 0; i < 3; i++) await expect(ask()).rejects.toThrow('no');
  fails = false;
  expect((await ask()).validator).toBe('1');
  expect((await ask()).validator).toBe('1');
  version = undefined;
  expect((await ask()).validator).toBe('2');
  version = '2';
  expect((await ask()).validator).toBe('3');
  expect((await ask()).validator).toBe('3');
});

test('what was kept at another version is kept no longer, and what was asked lately is kept at once at the next', async () => {
  const made: string[] = [];
  let version = '1';
  const cache = createResponseCache(async () => version);
  const ask = (question: string) =>
    cache.get(question, async () => {
      made.push(`${question} at ${version}`);
      return answerOf(question);
    });
  for (const question of ['a', 'a', 'b', 'b']) await ask(question);
  version = '2';
  for (const question of ['a', 'a']) await ask(question);
  version = '1';
  for (const question of ['a', 'b', 'a', 'b']) await ask(question);
  expect(made).toEqual(['a at 1', 'a at 1', 'b at 1', 'b at 1', 'a at 2', 'a at 1', 'b at 1']);
});
