/** Validators and lifetimes: what a client has is not sent again, and a 304 costs less than the answer. */
import { describe, expect, onTestFinished, test } from 'vitest';
import { cacheControl, matchingTag } from '../../../src/api/server/caching.ts';
import type { Message } from '../../../src/domain/message.ts';
import { openStore } from '../../../src/store/store.ts';
import { createTestDatabase } from '../../database.ts';
import { evmAddress, makeMessage, makeRange, makeSnapshot } from '../../fixtures.ts';
import { type Answer, expectError, serverForAll, serveStore } from '../running-server.ts';

const sent = makeMessage({ number: 1 });
const succeeded = makeMessage({ number: 2, status: 'SUCCESS' });
const failed = makeMessage({ number: 3, status: 'FAILED' });
const pathOf = ({ messageId }: { messageId: string }) => `/v2/messages/${messageId}`;
const jsonPaths = [
  '/v2/messages',
  '/messages?limit=1',
  pathOf(sent),
  pathOf(succeeded),
  '/openapi.json',
  '/healthz',
];

const server = serverForAll([sent, succeeded, failed]);

function expectNotModified(answer: Answer, tag: unknown): void {
  expect({ status: answer.status, text: answer.text }).toEqual({ status: 304, text: '' });
  expect(answer.headers.etag).toBe(tag);
  expect(answer.headers['cache-control']).toBeDefined();
  expect(answer.headers.vary).toMatch(/^Accept-Encoding\b/);
  expect(answer.headers['x-request-id']).toBeDefined();
  for (const name of ['content-type', 'content-length', 'content-encoding', 'transfer-encoding']) {
    expect(answer.headers, name).not.toHaveProperty(name);
  }
}

/** How often the store has been asked for something, by what /metrics says. */
async function readsOf(label: string): Promise<number> {
  const { text } = await server.ask('/metrics');
  const line = new RegExp(
    `^lanescan_database_query_duration_seconds_count\\{query="${label}",outcome="ok"\\} (\\d+)`,
    'm',
  );
  return Number(line.exec(text)?.[1] ?? 0);
}

describe('If-None-Match', () => {
  test.each(jsonPaths)('%s has a strong ETag, and is a 304 for who has it', async (path) => {
    const { headers } = await server.ask(path);
    expect(headers.etag).toMatch(/^"[\w-]{16,}"$/);
    for (const method of ['GET', 'HEAD']) {
      for (const given of [
        headers.etag,
        `W/${headers.etag}`,
        `"another", W/"and another" ,${headers.etag}`,
        `${headers.etag?.slice(0, -1)}-br"`,
        '*',
      ]) {
        const answer = await server.ask(path, { method, headers: { 'If-None-Match': String(given) } });
        expectNotModified(answer, given?.includes('-br') ? given : headers.etag);
      }
    }
  });

  test('another, a broken or an empty one gets the whole answer', async () => {
    for (const given of ['"another"', 'W/"x"', 'nonsense', '', '"', '"a', `${'"x",'.repeat(5000)}"y"`]) {
      const answer = await server.ask(pathOf(sent), { headers: { 'If-None-Match': given } });
      expect({ status: answer.status, id: answer.json<{ messageId: string }>().messageId }).toEqual({
        status: 200,
        id: sent.messageId,
      });
    }
  });

  test('does not turn an error into a 304', async () => {
    const headers = { 'If-None-Match': '*' };
    expectError(await server.ask('/v2/messages?limit=0', { headers }), 400, 'INVALID_PARAMETERS');
    expectError(await server.ask(`${pathOf(sent)}?x=1`, { headers }), 400, 'INVALID_PARAMETERS');
    expectError(await server.ask('/v2/messages/0x12', { headers }), 400, 'INVALID_MESSAGE_ID');
    expectError(await server.ask(`/v2/messages/0x${'0'.repeat(64)}`, { headers }), 404, 'MESSAGE_NOT_FOUND');
    expectError(await server.ask('/nothing', { headers }), 404, 'NOT_FOUND');
  });

  test('a 304 on a message reads no record', async () => {
    const { headers } = await server.ask(pathOf(succeeded));
    const before = { records: await readsOf('message'), digests: await readsOf('messageDigest') };
    for (let i = 0; i < 20; i++) {
      const answer = await server.ask(pathOf(succeeded), { headers: { 'If-None-Match': `${headers.etag}` } });
      expectNotModified(answer, headers.etag);
    }
    expect({ records: await readsOf('message'), digests: await readsOf('messageDigest') }).toEqual({
      records: before.records,
      digests: before.digests + 20,
    });
  });

  test('tags are compared whole', () => {
    expect(matchingTag('"abc"', 'ab')).toBeUndefined();
    expect(matchingTag('"ab-br"', 'ab')).toBe('"ab-br"');
    expect(matchingTag('"ab-zstd"', 'ab')).toBeUndefined();
    expect(matchingTag('ab', 'ab')).toBeUndefined();
    expect(matchingTag(undefined, 'ab')).toBeUndefined();
  });
});

test('the ETag of a message stays through restarts and another server, and changes with the message', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const restart = async (...messages: readonly Message[]) => {
    const store = await openStore({ place: { url: database.url } });
    await store.apply(messages.map(makeSnapshot));
    const restarted = await serveStore({ ...store, url: database.url });
    onTestFinished(() => restarted.close());
    return restarted;
  };
  const tagsAt = async ({ ask }: Pick<typeof server, 'ask'>) =>
    Promise.all([sent, succeeded].map(async (message) => (await ask(pathOf(message))).headers.etag));
  const tags = await tagsAt(server);
  for (let run = 0; run < 3; run++) expect(await tagsAt(await restart(sent, succeeded))).toEqual(tags);

  const changed = await restart(makeMessage({ number: 1, status: 'SUCCESS' }));
  const answer = await changed.ask(pathOf(sent), { headers: { 'If-None-Match': String(tags[0]) } });
  expect([answer.status, answer.json<Message>().status]).toEqual([200, 'SUCCESS']);
});

describe('Cache-Control', () => {
  test.each([
    [pathOf(sent), 'public, max-age=1'],
    [pathOf(failed), 'public, max-age=1'],
    // Delivered long ago.
    [pathOf(succeeded), 'public, max-age=86400, stale-while-revalidate=86400'],
    ['/v2/messages', 'public, max-age=1'],
    ['/openapi.json', 'public, max-age=300'],
    ['/docs', 'public, max-age=300'],
    ['/healthz', 'no-store'],
    ['/readyz', 'no-store'],
    ['/metrics', 'no-store'],
    ['/nothing', 'no-store'],
    ['/v2/messages?limit=0', 'no-store'],
    ['/', 'no-cache'],
  ])('%s: %s', async (path, expected) => {
    expect((await server.ask(path)).headers['cache-control']).toBe(expected);
  });

  test('a delivered message may be kept for a tenth of the time since, from a minute to a day', () => {
    const seconds = (age: number) =>
      Number(/max-age=(\d+)/.exec(cacheControl({ settledAt: 1e12 }, 1e12 + age * 1000))?.[1]);
    expect([-100, 0, 600, 1_199].map(seconds)).toEqual([60, 60, 60, 60]);
    expect([1_200, 36_000, 864_000, 1e9].map(seconds)).toEqual([120, 3_600, 86_400, 86_400]);
  });
});

describe('Link', () => {
  test('leads to the next page, with limit and view as they were given, until there is none', async () => {
    const ids: string[] = [];
    let path: string | undefined = '/messages?limit=1&view=summary&status=SENT,SUCCESS,FAILED';
    for (let page = 0; path !== undefined && page < 5; page++) {
      const answer: Answer = await server.ask(path);
      const { data, pagination } = answer.json<{
        data: { messageId: string }[];
        pagination: { limit: number; cursor: string | null };
      }>();
      ids.push(...data.map(({ messageId }) => messageId));
      expect(pagination.limit).toBe(1);
      expect(data[0]).not.toHaveProperty('nonce');
      const [, link] = /^<([^>]+)>; rel="next"$/.exec(String(answer.headers.link)) ?? [];
      expect(link === undefined).toBe(pagination.cursor === null);
      const next: URL | undefined = link === undefined ? undefined : new URL(link, `${server.url}${path}`);
      expect(next?.searchParams.get('cursor') ?? null).toBe(pagination.cursor);
      path = next && `${next.pathname}${next.search}`;
    }
    expect(ids).toEqual([failed, succeeded, sent].map(({ messageId }) => messageId));
  });

  test('is left out where it would be longer than clients take', async () => {
    const ids = Array.from({ length: 97 }, (_, index) => makeMessage({ number: 100 + index }).messageId);
    const messageId = [sent, succeeded]
      .map((message) => message.messageId)
      .concat(ids)
      .join(',');
    const answer = await server.ask(`/v2/messages?limit=1&messageId=${messageId}`);
    expect(answer.json<{ pagination: { cursor: string } }>().pagination.cursor.length).toBeGreaterThan(2_000);
    expect(answer.headers).not.toHaveProperty('link');
  });
});

describe('a message, whose record the SDK gets in another form', () => {
  const sdk = { 'X-SDK-Version': '1.12.0' };

  test('says in every response that it depends on the header of the SDK, so that no cache mixes the two', async () => {
    const plain = await server.ask(pathOf(succeeded));
    const forSdk = await server.ask(pathOf(succeeded), { headers: sdk });
    expect([plain.text.includes('"verifiers":null'), forSdk.text.includes('"verifiers":null')]).toEqual([
      true,
      false,
    ]);
    expect(plain.headers.etag).not.toBe(forSdk.headers.etag);
    const unchanged = await server.ask(pathOf(succeeded), {
      headers: { 'If-None-Match': String(plain.headers.etag) },
    });
    expect(unchanged.status).toBe(304);
    for (const { headers } of [plain, forSdk, unchanged]) {
      expect(headers.vary).toBe('Accept-Encoding, X-SDK-Version');
    }
  });

  test.each([
    ['the SDK', sdk, {}],
    ['others', {}, sdk],
  ])('is not a 304 for %s where only the other form is known', async (_who, headers, others) => {
    for (const message of [sent, succeeded]) {
      const known = await server.ask(pathOf(message), { headers: others });
      const own = await server.ask(pathOf(message), { headers });
      const tags = { 'If-None-Match': String(known.headers.etag) };
      const answer = await server.ask(pathOf(message), { headers: { ...headers, ...tags } });
      expect([answer.status, answer.text]).toEqual([200, own.text]);
      const again = await server.ask(pathOf(message), {
        headers: { ...headers, 'If-None-Match': String(own.headers.etag) },
      });
      expect(again.status).toBe(304);
    }
  });

  test('is no 304 for who has a record in flight without the off-ramp that a commit has named since', async () => {
    const message = makeMessage({ number: 77, version: '1.6.0' });
    await server.store.apply([makeSnapshot(message)]);
    const before = await server.ask(pathOf(message));
    const offramp = evmAddress('offramp');
    // The commit of another message of the lane: it changes no record.
    await server.store.apply([{ ...makeRange('Committed', message, 500, 501), offramp }]);
    const tags = { 'If-None-Match': String(before.headers.etag) };
    const after = await server.ask(pathOf(message), { headers: tags });
    expect(after.status).toBe(200);
    expect(after.json<{ offramp: string }>().offramp.toLowerCase()).toBe(offramp);
  });
});
