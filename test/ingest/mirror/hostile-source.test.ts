/** Whatever a source says, a mirror takes it, rejects it by name, or tries again later; it never ends and never hurries. */
import { describe, expect, test } from 'vitest';
import type { Message } from '../../../src/domain/message.ts';
import type { RejectedRecord } from '../../../src/ingest/mirror/intake.ts';
import { makeMessage } from '../../fixtures.ts';
import { listenWith } from '../../listening.ts';
import { follow, isEqual, openStoreForTest, run, stored, until } from './running-mirror.ts';
import { type Mood, startStandIn } from './stand-in.ts';

const successes = (count: number) =>
  Array.from({ length: count }, (_, index) => makeMessage({ number: index + 1, status: 'SUCCESS' }));

const pageOf = (data: readonly unknown[], cursor: string | null): Mood => ({
  status: 200,
  body: JSON.stringify({ data, pagination: { cursor, hasNextPage: cursor !== null } }),
});

test('a page with the same message twice is stored, as often as it is read', async () => {
  const unfinished = makeMessage({ number: 1, status: 'SENT' });
  const ready = makeMessage({ number: 2, status: 'FAILED' });
  const twice = [unfinished, ready, { ...unfinished, data: '0x01' }, ready];
  const standIn = await startStandIn(unfinished, ready);
  standIn.executionInputs.set(ready.messageId, { offramp: '0x01', messageBatch: [] });
  standIn.mood = ({ path }) => (path === '/v2/messages' ? pageOf(twice, null) : undefined);
  const store = await openStoreForTest();
  for (let i = 0; i < 2; i++) await run(standIn, store);
  const ids = (await stored(store)).map(({ messageId }) => messageId);
  expect(ids).toEqual([ready.messageId, unfinished.messageId]);
});

test.each([
  ['U+0000, which no database takes', 'a\u0000b'],
  ['missing', null],
])(
  'where the cursor of a next page is %s, the page is stored, and the walk goes on by time',
  async (_what, cursor) => {
    const messages = successes(6);
    const standIn = await startStandIn(...messages);
    standIn.isWhole = true;
    standIn.knowsTimes = true;
    standIn.mood = ({ path, query }) => {
      if (path !== '/v2/messages' || query.has('sentBefore')) return undefined;
      const body = { data: messages.slice(4), pagination: { cursor, hasNextPage: true } };
      return { status: 200, body: JSON.stringify(body) };
    };
    const store = await openStoreForTest();
    const logLines: string[] = [];
    follow(standIn, store, { writeLog: (text) => logLines.push(text) });
    await until(isEqual(store, standIn));
    expect(logLines.join()).toMatch(/cursor.*; trying again in/);
  },
);

test('an item or a record from the future is rejected by name, and the others are taken', async () => {
  const future = { ...makeMessage({ number: 3 }), sendTimestamp: '9999-12-31T23:59:59.999Z' };
  const standIn = await startStandIn(makeMessage({ number: 1, status: 'SUCCESS' }), future);
  const store = await openStoreForTest();
  const rejected: RejectedRecord[] = [];
  await run(standIn, store, { reject: (record) => rejected.push(record) });
  expect((await stored(store)).length).toBe(1);
  expect(rejected).toMatchObject([
    { messageId: future.messageId, problems: [{ path: '$.sendTimestamp', problem: /later than/ }] },
  ]);
  // It is not asked for again and again.
  expect(await store.mirror.countPending(standIn.url)).toBe(0);
});

test('JSON that is nested too deep to be written again is no end', async () => {
  const ready = makeMessage({ number: 1, status: 'FAILED' });
  const standIn = await startStandIn(ready);
  const deep = `${'['.repeat(200_000)}${']'.repeat(200_000)}`;
  standIn.mood = ({ path }) =>
    path.endsWith('/execution-inputs')
      ? { status: 200, body: `{"offramp":"0x01","messageBatch":${deep}}` }
      : undefined;
  const store = await openStoreForTest();
  expect(await run(standIn, store)).toMatchObject({ created: 1 });
});

describe('a record of more than 64 MiB', { tags: 'slow', timeout: 600_000 }, () => {
  const messages = successes(4);
  const huge = messages.at(-1) as Message;
  const tooLong = JSON.stringify({ ...huge, data: `0x${'00'.repeat(34 * 1024 * 1024)}` });

  test.each([
    ['alone', false],
    ['in a page that no size makes readable', true],
  ])('is rejected by name %s, and the others are taken', async (_where, isInPage) => {
    const standIn = await startStandIn(...messages);
    standIn.mood = ({ path, query }) => {
      if (path === `/v2/messages/${huge.messageId}`) return { status: 200, body: tooLong };
      // A Lanescan, whose pages have whole records unless it is asked for summaries.
      const isFirst = path === '/v2/messages' && !query.has('cursor');
      if (isInPage && isFirst && query.get('view') !== 'summary') return { status: 200, body: tooLong };
      return undefined;
    };
    const store = await openStoreForTest();
    const rejected: RejectedRecord[] = [];
    // A busy machine may take minutes for these responses.
    const sourceTiming = { timeoutMs: 600_000 };
    await run(standIn, store, {
      sourceTiming,
      signal: new AbortController().signal,
      reject: (record) => rejected.push(record),
    });
    expect((await stored(store)).length).toBe(3);
    expect(rejected).toMatchObject([
      { messageId: huge.messageId, problems: [{ path: '$', problem: /more than 67108864 bytes/ }] },
    ]);
  });
});

describe('a mirror that follows', () => {
  /** Answers of a server in trouble, each for a while in place of the page. */
  const troubles: Readonly<Record<string, Mood>> = {
    'status 403': { status: 403 },
    'status 401': { status: 401 },
    'status 404': { status: 404, body: '<html>no such page</html>' },
    'status 400': { status: 400 },
    'a maintenance page with 200': { status: 200, body: '{"status":"maintenance"}' },
    'null with 200': { status: 200, body: 'null' },
    'HTML with 200': { status: 200, body: '<html>back soon</html>' },
    'a list that is none': { status: 200, body: '[]' },
    'a redirect to another host': { status: 302, headers: { Location: 'https://login.example/' } },
    'a redirect to itself': { status: 302, headers: { Location: '/v2/messages' } },
    'simulated data': { status: 200, headers: { 'X-Lanescan-Simulated': 'true' }, body: '{"data":[]}' },
    'a million items': { status: 200, body: `{"data":[${'0,'.repeat(1_000_000)}0]}` },
  };

  test('goes on after everything that a source in trouble answers, and after a restart in the middle of it', {
    tags: 'slow',
  }, async () => {
    const standIn = await startStandIn(makeMessage({ number: 1, status: 'SUCCESS' }));
    const store = await openStoreForTest();
    const logLines: string[] = [];
    const writeLog = (text: string) => logLines.push(text);
    let number = 1;
    let mirror = follow(standIn, store, { writeLog });
    await until(isEqual(store, standIn));
    for (const [name, trouble] of Object.entries(troubles)) {
      const seen = logLines.length;
      standIn.mood = ({ path }) => (path === '/v2/messages' ? trouble : undefined);
      await until(async () => logLines.length > seen);
      await mirror.end();
      mirror = follow(standIn, store, { writeLog });
      await until(async () => logLines.length > seen + 1);
      standIn.mood = () => undefined;
      standIn.add(makeMessage({ number: ++number, status: 'SUCCESS' }));
      await until(isEqual(store, standIn)).catch((error) => {
        throw new Error(`${name}: ${logLines.slice(seen).join('; ')}`, { cause: error });
      });
    }
    expect(logLines.join('\n')).toMatch(/answers 403.*; trying again in/);
  });

  test.each(['status 401', 'status 404', 'null with 200', 'a redirect to another host', 'simulated data'])(
    'ends at once where the very first answer is %s: the configuration is wrong',
    async (name) => {
      const standIn = await startStandIn();
      standIn.mood = () => troubles[name];
      await expect(run(standIn, await openStoreForTest(), { once: false })).rejects.toMatchObject({
        remedy: expect.any(String),
      });
    },
  );
});

describe('pages that lead nowhere', { tags: 'slow' }, () => {
  const [older, newer] = successes(2);
  let unique = 0;
  const walks: Readonly<Record<string, (cursor: string | null) => Mood>> = {
    'a loop of two cursors': (cursor) => (cursor === 'B' ? pageOf([older], 'A') : pageOf([newer], 'B')),
    'empty pages without end': (cursor) => pageOf(cursor === null ? [newer] : [], `c${++unique}`),
    'the same page with ever new cursors': () => pageOf([newer, older], `c${++unique}`),
    'cursors that are never accepted': (cursor) =>
      cursor === null ? pageOf([newer], `c${++unique}`) : { status: 400 },
  };

  /** Not the stand-in: its list of requests would keep all of them. */
  async function startWalk(answer: (cursor: string | null) => Mood) {
    const seen = { requests: 0, url: '' };
    const { origin } = await listenWith((request, response) => {
      seen.requests++;
      const { pathname, searchParams } = new URL(request.url ?? '', 'http://walk');
      const mood = pathname === '/v2/messages' ? answer(searchParams.get('cursor')) : { status: 404 };
      if (typeof mood !== 'object') return;
      response.writeHead(mood.status, { 'Content-Type': 'application/json' }).end(mood.body ?? '{}');
    });
    return Object.assign(seen, { url: origin });
  }

  test.each(Object.keys(walks))('%s: it says so and backs off, and ends with --once', async (name) => {
    const walk = walks[name] ?? (() => ({ status: 500 }));
    const once = await startWalk(walk);
    await expect(run(once, await openStoreForTest())).rejects.toThrow(
      /further into the past|expire|not accepted/,
    );
    expect(once.requests).toBeLessThan(250);

    const followed = await startWalk(walk);
    const logLines: string[] = [];
    // A pause that never ends in this test: what comes after it is not asked for.
    const timing = { roundIntervalMs: 30, failurePauseMs: 3_600_000 };
    const { end } = follow(followed, await openStoreForTest(), {
      writeLog: (text) => logLines.push(text),
      timing,
    });
    await until(async () => logLines.length >= 1);
    const before = followed.requests;
    expect(before).toBeLessThan(500);
    await end();
    expect(logLines[0]).toMatch(/(further into the past|expire|not accepted).*; trying again in/);
  });
});
