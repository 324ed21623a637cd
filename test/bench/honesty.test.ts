// @module-tag slow: runs the benchmark against servers that answer wrongly
/** The benchmark does not lie quietly: a wrong answer ends a measurement, whatever is wrong with it. */
import { describe, expect, test } from 'vitest';
import { type LoadOrder, runLoad } from '../../bench/load/client.ts';
import { checkAnswer, compareWithOracle } from '../../bench/measurements/answers.ts';
import type { SearchRequest } from '../../bench/requests.ts';
import { parseSearch } from '../../src/domain/filters/search-parameters.ts';
import { type SearchBody, startServerForTest } from '../api/running-server.ts';
import { evmAddress, makeMessage } from '../fixtures.ts';
import { listenWith } from '../listening.ts';
import { connectTo } from '../postgres.ts';

const sender = evmAddress('sender');
const messages = Array.from({ length: 6 }, (_, index) =>
  makeMessage({ number: index, sender: index < 5 ? sender : evmAddress('somebody else') }),
);
/** The three newest of five. */
const request: SearchRequest = {
  path: `/v2/messages?sender=${sender}&limit=3`,
  search: parseSearch(Object.entries({ sender, limit: '3' })),
  rows: 3,
};

async function rightAnswer(): Promise<SearchBody> {
  const server = await startServerForTest(messages);
  return (await server.ask(request.path)).json<SearchBody>();
}

/** Each makes the rows of a right page wrong. */
const spoilers: Readonly<Record<string, (rows: SearchBody['data']) => SearchBody['data']>> = {
  'a row too few': (rows) => rows.slice(1),
  'a row too many': (rows) => [...rows, makeMessage({ number: 1, sender })],
  'rows in another order': (rows) => rows.toReversed(),
  'a row twice': (rows) => [0, 0, 1].flatMap((index) => rows[index] ?? []),
};
const spoilersOfMeaning: Readonly<Record<string, (page: SearchBody) => object>> = {
  ...Object.fromEntries(
    Object.entries({
      ...spoilers,
      "somebody else's row": (rows: SearchBody['data']) => [messages[5], ...rows.slice(1)],
    }).map(([name, spoil]) => [name, ({ data, pagination }) => ({ data: spoil(data), pagination })]),
  ),
  'another limit': ({ data, pagination }) => ({ data, pagination: { ...pagination, limit: 4 } }),
  'a next page without a cursor': ({ data, pagination }) => ({
    data,
    pagination: { ...pagination, cursor: null },
  }),
};

describe('under load', () => {
  async function load(
    answer: (n: number) => { status?: number; body: string; length?: number },
    order: Partial<LoadOrder> = {},
  ) {
    let asked = 0;
    const { port } = await listenWith((_, response) => {
      const { status = 200, body, length } = answer(++asked);
      response.writeHead(status, { 'content-length': length ?? Buffer.byteLength(body) });
      response.end(body);
    });
    return runLoad({
      port: Number(port),
      requests: [request],
      from: 0,
      connections: 2,
      count: 20,
      check: 'page',
      keepEvery: 5,
      ...order,
    });
  }

  test('right answers are counted', async () => {
    const body = JSON.stringify(await rightAnswer());
    const { requests, bytes, kept } = await load(() => ({ body }));
    expect(requests).toBe(20);
    expect(bytes).toBe(20 * Buffer.byteLength(body));
    expect(kept).toEqual(Array.from({ length: 4 }, () => ({ index: 0, body })));
  });

  test.each(Object.keys(spoilers))('%s', async (name) => {
    const page = await rightAnswer();
    const wrong = JSON.stringify({ ...page, data: spoilers[name]?.(page.data) });
    await expect(load((n) => ({ body: n === 17 ? wrong : JSON.stringify(page) }))).rejects.toThrow(
      /\/v2\/messages\?.*(rows instead of 3|out of order)/,
    );
  });

  test('a server that sheds load', async () => {
    const answer = (n: number) => ({ status: n === 17 ? 503 : 200, body: 'come back later' });
    await expect(load(answer, { check: 'status' })).rejects.toThrow(/answered HTTP\/1.1 503.*come back/s);
  });

  test('a request that the server sheds is not counted, and is sent again when it is time', async () => {
    const askedAt: number[] = [];
    const { port } = await listenWith((_, response) => {
      askedAt.push(performance.now());
      if (askedAt.length === 3) response.writeHead(503, { 'retry-after': '1', 'content-length': 0 });
      response.end(askedAt.length === 3 ? '' : 'fine');
    });
    const { requests, shed } = await runLoad({
      ...{ port: Number(port), requests: [request], from: 0, connections: 1, count: 5 },
      check: 'status',
    });
    expect({ requests, shed }).toEqual({ requests: 5, shed: 1 });
    expect((askedAt[3] ?? 0) - (askedAt[2] ?? 0)).toBeGreaterThan(990);
  });

  test('an answer that is not whole', async () => {
    const answer = (n: number) => ({ body: 'whole', ...(n === 17 && { length: 6 }) });
    await expect(load(answer, { check: 'status' })).rejects.toThrow('hung up');
  });

  test('a byte that differs where all answers must be the same', async () => {
    const answer = (n: number) => ({ body: n === 17 ? 'sane' : 'same' });
    await expect(load(answer, { check: 'same' })).rejects.toThrow('differs');
    await expect(load(() => ({ body: 'same' }), { check: 'same' })).resolves.toMatchObject({ requests: 20 });
  });
});

describe('at a close look', () => {
  test('a right answer passes', async () => {
    expect(() => checkAnswer(request, '')).toThrow();
    checkAnswer(request, JSON.stringify(await rightAnswer()));
  });

  test.each(Object.keys(spoilersOfMeaning))('%s', async (name) => {
    const wrong = JSON.stringify(spoilersOfMeaning[name]?.(await rightAnswer()));
    expect(() => checkAnswer(request, wrong)).toThrow(request.path);
  });

  test('what looks right alone, and is not what the database has', async () => {
    const server = await startServerForTest(messages);
    const client = await connectTo(server.store.url);
    try {
      const { data, pagination } = (await server.ask(request.path)).json<SearchBody>();
      const look = (page: SearchBody) => compareWithOracle(client, request, JSON.stringify(page));
      await look({ data, pagination });
      const older = makeMessage({ number: 1, sender });
      const skipping = { data: [...data.slice(0, 2), older], pagination };
      checkAnswer(request, JSON.stringify(skipping));
      await expect(look(skipping)).rejects.toThrow('plain query');
      const ending = { data, pagination: { ...pagination, hasNextPage: false, cursor: null } };
      checkAnswer(request, JSON.stringify(ending));
      await expect(look(ending)).rejects.toThrow('next page');
    } finally {
      await client.end();
    }
  });
});
