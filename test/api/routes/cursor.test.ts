/** The cursor's rules: alone or with limit and view, never with a filter, and only as it was given out. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MAX_CURSOR_LENGTH } from '../../../src/domain/filters/cursor.ts';
import { filterNames, filterTable } from '../../../src/domain/filters/filter-table.ts';
import { makeMessage } from '../../fixtures.ts';
import {
  expectError,
  type RunningServer,
  type SearchBody,
  startServer,
  walkPages,
} from '../running-server.ts';

const messages = Array.from({ length: 7 }, (_, index) => makeMessage({ number: index + 1 }));
const newestFirst = messages.map(({ messageId }) => messageId).reverse();

let server: RunningServer;
let cursor: string;
const search = async (query: string) => (await server.ask(`/v2/messages?${query}`)).json<SearchBody>();
beforeAll(async () => {
  server = await startServer(messages);
  cursor = (await search('limit=3')).pagination.cursor ?? '';
});
afterAll(() => server.close());

describe('a cursor', () => {
  test('continues exactly behind its page, until it is null on the last one', async () => {
    const pages: SearchBody['pagination'][] = [];
    const { ids } = await walkPages(server, 'limit=3', {
      check: async ({ json }) => void pages.push(json<SearchBody>().pagination),
    });
    expect(ids).toEqual(newestFirst);
    expect(pages.map(({ hasNextPage }) => hasNextPage)).toEqual([true, true, false]);
    expect(pages.at(-1)).toEqual({ limit: 3, hasNextPage: false, cursor: null });
  });

  test('is null when the page ends with the last message', async () => {
    expect((await search('limit=7')).pagination).toEqual({ limit: 7, hasNextPage: false, cursor: null });
    expect((await search('limit=6')).pagination.hasNextPage).toBe(true);
  });

  test('needs no percent-encoding', () => {
    expect(cursor).toMatch(/^[A-Za-z0-9_-]+$/);
  });

  test('goes alone, with limit, with view, and with both; without a limit the default holds', async () => {
    for (const [extra, count] of [
      ['', 4],
      ['&limit=2', 2],
      ['&view=summary', 4],
      ['&view=full&limit=1', 1],
    ] as const) {
      const { data, pagination } = await search(`cursor=${cursor}${extra}`);
      expect(pagination.limit).toBe(extra.includes('limit') ? count : 20);
      expect(data.map(({ messageId }) => messageId)).toEqual(newestFirst.slice(3, 3 + count));
    }
  });

  test('keeps the filters of its search', async () => {
    const [third] = newestFirst.slice(2);
    const filters = `messageId=${newestFirst[0]},${third}&status=SENT`;
    const first = await search(`${filters}&limit=1`);
    const second = await search(`cursor=${first.pagination.cursor}&limit=1`);
    expect(second.data.map(({ messageId }) => messageId)).toEqual([third]);
    expect(second.pagination.cursor).toBeNull();
  });
});

describe('a cursor beside a filter is rejected with 400', () => {
  const values = [
    ...filterNames.map((name) => [name, filterTable[name].example] as const),
    ...filterNames.map((name) => [name, ''] as const),
    ['readyForManualExecOnly', 'false'],
    ['sender', 'nonsense'],
  ] as const;

  test.each(values)('%s=%s', async (name, value) => {
    const pair = `${name}=${encodeURIComponent(value)}`;
    for (const query of [`cursor=${cursor}&${pair}`, `${pair}&limit=5&cursor=${cursor}`, `cursor=&${pair}`]) {
      const body = expectError(
        await server.ask(`/v2/messages?${query}`),
        400,
        'INVALID_PARAMETER_COMBINATION',
      );
      expect(body.details).toEqual([{ parameter: name, problem: expect.stringContaining('cursor') }]);
    }
  });

  test('several filters are all named', async () => {
    const body = expectError(
      await server.ask(`/messages?sender=x&cursor=${cursor}&q=y`),
      400,
      'INVALID_PARAMETER_COMBINATION',
    );
    expect(body.details.map(({ parameter }) => parameter)).toEqual(['sender', 'q']);
  });
});

describe('a cursor that was not given out is rejected with 400 INVALID_CURSOR', () => {
  const bytesOf = (text: string) => Buffer.from(text, 'base64url');
  const changed = (index: number) => {
    const bytes = bytesOf(cursor);
    bytes[index] = (bytes.at(index) ?? 0) ^ 1;
    return bytes.toString('base64url');
  };
  const cases: readonly (readonly [what: string, text: () => string])[] = [
    ['one letter', () => 'A'],
    ['not base64', () => encodeURIComponent('%%%')],
    ['the other base64 alphabet', () => encodeURIComponent(`${cursor.slice(0, -2)}+/`)],
    ['padded', () => `${cursor}%3D%3D`],
    ['surrounded by spaces', () => `%20${cursor}%20`],
    ['truncated by one character', () => cursor.slice(0, -1)],
    ['truncated to half', () => cursor.slice(0, cursor.length / 2)],
    ['truncated to its head', () => cursor.slice(0, 12)],
    ['lengthened', () => `${cursor}AAAA`],
    ['in the wrong letter case', () => cursor.toLowerCase()],
    ['over-long', () => 'A'.repeat(15_000)],
    ['of somebody else', () => Buffer.from('{"id":17,"dir":"next"}').toString('base64url')],
    ['with a null byte', () => `${cursor}%00`],
  ];

  test.each(cases)('%s', async (_what, text) => {
    const body = expectError(await server.ask(`/v2/messages?cursor=${text()}`), 400, 'INVALID_CURSOR');
    expect(body.details).toEqual([{ parameter: 'cursor', problem: expect.any(String) }]);
  });

  test.each([
    [MAX_CURSOR_LENGTH, 'is damaged'],
    [MAX_CURSOR_LENGTH + 1, 'is longer than any cursor of this service (28000 characters)'],
  ])('one of %i characters', async (length, problem) => {
    const answer = await server.ask(`/v2/messages?cursor=${'_'.repeat(length)}`);
    expect(expectError(answer, 400, 'INVALID_CURSOR').details).toEqual([
      { parameter: 'cursor', problem: expect.stringContaining(problem) },
    ]);
  });

  test('an empty one is rejected too', async () => {
    const { error, details } = (await server.ask('/v2/messages?cursor=')).json();
    expect(error).toBe('INVALID_PARAMETERS');
    expect(details).toEqual([{ parameter: 'cursor', problem: expect.stringContaining('empty') }]);
  });

  test('every single changed byte is found', async () => {
    const last = bytesOf(cursor).length;
    for (let index = 0; index < last; index++) {
      expectError(await server.ask(`/v2/messages?cursor=${changed(index)}`), 400, 'INVALID_CURSOR');
    }
  });

  test('given twice it is rejected as repeated', async () => {
    const answer = await server.ask(`/v2/messages?cursor=${cursor}&cursor=${cursor}`);
    expect(expectError(answer, 400, 'INVALID_PARAMETERS').details).toEqual([
      { parameter: 'cursor', problem: expect.stringContaining('more than once') },
    ]);
  });
});
