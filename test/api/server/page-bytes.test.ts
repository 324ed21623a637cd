/** A page is bounded in bytes as well as in rows; walks, tags and the official client take no notice. */
import { describe, expect, test } from 'vitest';
import { compareNewestFirst } from '../../../src/domain/filters/matches.ts';
import { parseSearch } from '../../../src/domain/filters/search-parameters.ts';
import { MAX_PAGE_BYTES } from '../../../src/store/query/search.ts';
import { openStore } from '../../../src/store/store.ts';
import { evmAddress, makeMessage } from '../../fixtures.ts';
import { CCIPAPIClient } from '../../lab/sdk.ts';
import { type SearchBody, serverForAll, startServerForTest, walkPages } from '../running-server.ts';

/** Hexadecimal digits that do not compress to nothing. */
const payload = (number: number, bytes: number) => {
  let state = number + 1;
  const words = Array.from({ length: bytes / 4 }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state.toString(16).padStart(8, '0');
  });
  return `0x${words.join('')}`;
};

const COUNT = 400;
// 24 MB in all. One record in the middle is long by itself.
const messages = Array.from({ length: COUNT }, (_, number) =>
  makeMessage({ number, data: payload(number, number === 200 ? 900_000 : 30_000) }),
);
const newestFirst = [...messages].sort(compareNewestFirst).map(({ messageId }) => messageId);

const server = serverForAll(messages);

const walk = (query: string) =>
  walkPages(server, query, {
    async check({ text, headers, json }) {
      expect(Buffer.byteLength(text)).toBeLessThan(MAX_PAGE_BYTES + 100_000);
      expect(headers.link !== undefined).toBe(json<SearchBody>().pagination.hasNextPage);
    },
  });

describe('a search over long records', () => {
  const endsEarly = async (limit: number) => {
    const { ids, pages } = await walk(`limit=${limit}`);
    expect(ids).toEqual(newestFirst);
    expect(pages).toBeGreaterThanOrEqual(4);
  };
  const name = 'with limit %i ends its pages early, says so, and a walk sees every message once';
  test.each([1000, 100])(name, endsEarly);
  test.each([400, 399, 150, 101])(name, { tags: 'slow' }, endsEarly);

  test('names the limit that was asked for', async () => {
    const { data, pagination } = (await server.ask('/v2/messages?limit=1000')).json<SearchBody>();
    expect(pagination).toMatchObject({ limit: 1000, hasNextPage: true });
    expect(data.length).toBeLessThan(COUNT);
  });

  test('in the summary view has all of them on one page', async () => {
    const { ids, pages } = await walk('limit=1000&view=summary');
    expect({ pages, ids }).toEqual({ pages: 1, ids: newestFirst });
  });

  test('through several scans that are merged is walked the same', async () => {
    const { sender } = makeMessage();
    const { ids } = await walk(`limit=1000&address=${sender}`);
    expect(ids).toEqual(newestFirst);
  });

  test('is walked to its end by the official client', { tags: 'slow' }, async () => {
    const api = new CCIPAPIClient(server.url, { logger: { debug() {}, info() {}, warn() {}, error() {} } });
    const ids: string[] = [];
    for await (const { messageId } of api.searchAllMessages({}, { limit: 1000 })) ids.push(messageId);
    expect(ids).toEqual(newestFirst);
  });

  test('leaves its connection good for others, also after a failure in the middle of a page', async () => {
    const store = await openStore({ place: { url: server.store.url }, connections: 1 });
    try {
      const query = parseSearch([['limit', '1000']]);
      const failing = {
        head: '[',
        tail: () => {
          throw new Error('no tail');
        },
      };
      for (let i = 0; i < 3; i++) {
        await expect(store.search(query, failing)).rejects.toThrow('no tail');
        expect((await store.search(query)).records.length).toBeGreaterThan(100);
        expect((await store.search({ ...query, limit: 1 })).records).toHaveLength(1);
      }
    } finally {
      await store.close();
    }
  });
});

test('a record longer than a page is a page of its own', { tags: 'slow' }, async () => {
  const verifier = (name: string) => ({
    sourceAddress: evmAddress(name),
    destAddress: evmAddress(name),
    metadata: { name },
    isRequired: true,
    status: 'COMPLETED' as const,
    verification: { data: payload(1, 900_000), timestamp: '2026-01-01T00:00:00.000Z' },
  });
  const heavy = (number: number) =>
    makeMessage({
      number,
      verifiers: { items: ['a', 'b', 'c', 'd', 'e'].map(verifier), optionalThreshold: 0 },
    });
  const few = await startServerForTest([heavy(1), heavy(2), heavy(3)]);
  for (const limit of [3, 500]) {
    const { ids, pages } = await walkPages(few, `limit=${limit}`);
    expect({ ids, pages }).toEqual({
      ids: [3, 2, 1].map((number) => makeMessage({ number }).messageId),
      pages: 3,
    });
  }
});
