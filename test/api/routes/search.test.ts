/** The search over HTTP: its paths, its filters, and the spellings of addresses. */
import { describe, expect, test } from 'vitest';
import { filterNames } from '../../../src/domain/filters/filter-table.ts';
import { compareNewestFirst, matches } from '../../../src/domain/filters/matches.ts';
import { parseSearch, type RawParameters } from '../../../src/domain/filters/search-parameters.ts';
import type { Message } from '../../../src/domain/message.ts';
import {
  barest,
  batch,
  evmToSvm,
  sampleMessages,
  svmToEvm,
  tokenToEvm,
} from '../../fixtures/sample-messages.ts';
import { evmAddress, fuji, hashOf, sepolia, solanaDevnet } from '../../fixtures.ts';
import { expectFreshRequestId, type SearchBody, serverForAll } from '../running-server.ts';

const newestFirst = [...sampleMessages].sort(compareNewestFirst);
const ids = (messages: readonly Message[]) => messages.map(({ messageId }) => messageId);

const server = serverForAll(sampleMessages);

async function search(parameters: RawParameters): Promise<readonly Message[]> {
  const query = new URLSearchParams([...parameters, ['limit', '1000']] as [string, string][]);
  const answer = await server.ask(`/v2/messages?${query}`);
  expect(answer.status, answer.text).toBe(200);
  expectFreshRequestId(answer.headers);
  return answer.json<SearchBody>().data;
}

describe('the path of the search', () => {
  test.each([
    '/v2/messages',
    '/messages',
    '//v2/messages',
    '/v2//messages',
    '///v2///messages///',
    '/v2/messages/',
    '/messages/',
    '//messages',
    '/v2/messages?',
  ])('%s is answered, with parameters and without', async (path) => {
    const answer = await server.ask(path);
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    const body = answer.json<SearchBody>();
    expect(Object.keys(body)).toEqual(['data', 'pagination']);
    expect(body.pagination).toEqual({ limit: 20, hasNextPage: true, cursor: expect.any(String) });
    expect(ids(body.data)).toEqual(ids(newestFirst.slice(0, 20)));
    const two = await server.ask(`${path.replace('?', '')}?limit=2&view=summary`);
    expect(ids(two.json<SearchBody>().data)).toEqual(ids(newestFirst.slice(0, 2)));
  });

  test('one message is found under both paths, in any letter case of its id', async () => {
    const { messageId } = tokenToEvm;
    const upper = `0x${messageId.slice(2).toUpperCase()}`;
    for (const path of [`/v2/messages/${messageId}`, `/messages/${messageId}/`, `//v2//messages/${upper}`]) {
      expect((await server.ask(path)).json<Message>()).toEqual(tokenToEvm);
    }
  });

  test('GET / is a page for people', async () => {
    const answer = await server.ask('/');
    expect(answer.headers['content-type']).toBe('text/html; charset=utf-8');
    expectFreshRequestId(answer.headers);
  });
});

describe('Accept', () => {
  test.each([
    'application/json',
    '*/*',
    'application/*',
    'text/html, application/json;q=0.1',
    'APPLICATION/JSON; charset=utf-8',
    '',
  ])('"%s" is served', async (accept) => {
    expect((await server.ask('/v2/messages', { headers: { accept } })).status).toBe(200);
  });
});

describe('HEAD', () => {
  test.each([
    '/v2/messages',
    '/messages?limit=3',
    `/v2/messages/${tokenToEvm.messageId}`,
    '/healthz',
    '/readyz',
    '/openapi.json',
    '/docs',
    '/',
  ])('%s has the headers of GET and no body', async (path) => {
    const get = await server.ask(path);
    const head = await server.ask(path, { method: 'HEAD' });
    const comparable = ({ 'x-request-id': _id, date: _date, ...rest }: typeof get.headers) => rest;
    expect(head.status).toBe(get.status);
    expect(head.text).toBe('');
    expect(comparable(head.headers)).toEqual(comparable(get.headers));
    expectFreshRequestId(head.headers);
    expectFreshRequestId(get.headers);
  });
});

describe('limit', () => {
  test('is 20 when not given, and any whole number from 1 to 1000', async () => {
    for (const [query, limit] of [
      ['', 20],
      ['?limit=1', 1],
      ['?limit=20', 20],
      ['?limit=1000', 1000],
      ['?limit=007', 7],
    ] as const) {
      const { data, pagination } = (await server.ask(`/v2/messages${query}`)).json<SearchBody>();
      expect(pagination.limit).toBe(limit);
      expect(data).toHaveLength(Math.min(limit, sampleMessages.length));
    }
  });
});

const lower = (text: string) => text.toLowerCase();
const upper = (text: string) => `0x${text.slice(2).toUpperCase()}`;
const padded = (text: string) => `0x${'0'.repeat(24)}${text.slice(2)}`;

interface FilterCase {
  readonly filters: RawParameters;
  /** How many of the samples match; the reference of the domain says which. */
  readonly count: number;
}

const link = tokenToEvm.tokenAmounts[0];
const solanaLink = evmToSvm.tokenAmounts[0];
const filterCases: readonly FilterCase[] = [
  { filters: [['sender', tokenToEvm.sender]], count: 27 },
  // A wrong checksum is forgiven.
  { filters: [['sender', tokenToEvm.sender.replace(/[a-f]/, (letter) => letter.toUpperCase())]], count: 27 },
  { filters: [['sender', svmToEvm.sender]], count: 1 },
  { filters: [['sender', evmAddress('nobody')]], count: 0 },
  { filters: [['receiver', '11111111111111111111111111111111']], count: 0 },
  { filters: [['receiver', evmToSvm.receiver]], count: 1 },
  { filters: [['receiver', tokenToEvm.receiver]], count: 30 },
  { filters: [['sourceChainSelector', sepolia.chainSelector]], count: 29 },
  { filters: [['sourceChainSelector', solanaDevnet.chainSelector]], count: 1 },
  { filters: [['sourceChainSelector', '18446744073709551615']], count: 1 },
  { filters: [['sourceChainSelector', '1']], count: 0 },
  { filters: [['destChainSelector', solanaDevnet.chainSelector]], count: 1 },
  { filters: [['destChainSelector', '0']], count: 0 },
  { filters: [['chainSelector', solanaDevnet.chainSelector]], count: 2 },
  { filters: [['chainSelector', '1']], count: 0 },
  { filters: [['readyForManualExecOnly', 'true']], count: 4 },
  { filters: [['readyForManualExecOnly', 'false']], count: 31 },
  { filters: [['sourceTransactionHash', hashOf('batch')]], count: 3 },
  { filters: [['sourceTransactionHash', upper(hashOf('batch'))]], count: 3 },
  { filters: [['sourceTransactionHash', svmToEvm.sendTransactionHash]], count: 1 },
  { filters: [['sourceTransactionHash', hashOf('nobody')]], count: 0 },
  { filters: [['status', 'SENT']], count: 7 },
  { filters: [['status', 'FAILED,SUCCESS']], count: 9 },
  { filters: [['status', 'BLESSED']], count: 3 },
  { filters: [['sentAfter', tokenToEvm.sendTimestamp]], count: 7 },
  { filters: [['sentAfter', '2026-01-01T01:00:30+01:00']], count: 7 },
  { filters: [['sentBefore', tokenToEvm.sendTimestamp]], count: 24 },
  // A microsecond later it is before the bound.
  { filters: [['sentBefore', tokenToEvm.sendTimestamp.replace('Z', '001Z')]], count: 25 },
  { filters: [['sentAfter', tokenToEvm.sendTimestamp.replace('Z', '001Z')]], count: 6 },
  { filters: [['sentBefore', '2020-01-01T00:00:00Z']], count: 0 },
  { filters: [['address', batch[0]?.sender ?? '']], count: 3 },
  { filters: [['address', tokenToEvm.origin]], count: 30 },
  { filters: [['address', evmToSvm.receiver]], count: 1 },
  { filters: [['sourceTokenAddress', link?.sourceTokenAddress ?? '']], count: 2 },
  { filters: [['sourceTokenAddress', link?.destTokenAddress ?? '']], count: 0 },
  { filters: [['destTransactionHash', tokenToEvm.receiptTransactionHash ?? '']], count: 1 },
  { filters: [['destTransactionHash', evmToSvm.receiptTransactionHash ?? '']], count: 1 },
  { filters: [['messageId', `${tokenToEvm.messageId},${upper(barest.messageId)},${hashOf('x')}`]], count: 2 },
  { filters: [['q', solanaLink?.destTokenAddress ?? '']], count: 1 },
  { filters: [['q', link?.sourcePoolAddress ?? '']], count: 2 },
  { filters: [['q', `${link?.sourceTokenAddress}, ${tokenToEvm.sender}`]], count: 2 },
  { filters: [['q', svmToEvm.messageId]], count: 1 },
  { filters: [['q', evmToSvm.receiptTransactionHash ?? '']], count: 1 },
  { filters: [['q', `${svmToEvm.messageId},${evmToSvm.messageId}`]], count: 0 },
  {
    filters: [
      ['sender', tokenToEvm.sender],
      ['sourceChainSelector', sepolia.chainSelector],
      ['destChainSelector', fuji.chainSelector],
      ['status', 'FAILED,SENT'],
      ['readyForManualExecOnly', 'true'],
      ['sentAfter', '2026-01-01T00:00:10Z'],
      ['sentBefore', '2026-01-01T00:01:00Z'],
      ['address', tokenToEvm.receiver],
    ],
    count: 2,
  },
  {
    filters: [
      ['sourceTokenAddress', link?.sourceTokenAddress ?? ''],
      ['status', 'SUCCESS'],
      ['destTransactionHash', tokenToEvm.receiptTransactionHash ?? ''],
      ['sourceTransactionHash', tokenToEvm.sendTransactionHash],
      ['messageId', tokenToEvm.messageId],
      ['q', link?.sourcePoolAddress ?? ''],
    ],
    count: 1,
  },
];

describe('filters', () => {
  const named = filterCases.map((given) => ({
    ...given,
    title: given.filters.map(([name, value]) => `${name}=${value.slice(0, 24)}`).join(' and '),
  }));

  test.each(named)('$title finds $count', async ({ filters, count }) => {
    const found = await search(filters);
    const expected = newestFirst.filter((message) => matches(parseSearch(filters).filters, message));
    expect(ids(found)).toEqual(ids(expected));
    expect(found).toHaveLength(count);
  });

  test('each one of the service is among these cases', () => {
    const used = new Set(filterCases.flatMap(({ filters }) => filters.map(([name]) => name)));
    expect(used).toEqual(new Set(filterNames));
  });
});

describe('an address is found in every spelling of its family', () => {
  const evm = tokenToEvm.sender;
  const spellings = [
    evm,
    lower(evm),
    upper(evm),
    upper(evm).replace('0x', '0X'),
    padded(evm),
    padded(lower(evm)),
  ];

  test.each(['sender', 'address', 'q'])('%s: checksummed, lower, upper, padded', async (name) => {
    const [first = [], ...others] = await Promise.all(spellings.map((text) => search([[name, text]])));
    expect(first.length).toBeGreaterThan(20);
    for (const found of others) expect(ids(found)).toEqual(ids(first));
  });
});

test('a search that finds nothing is an empty page, not an error', async () => {
  const { data, pagination } = (await server.ask('/v2/messages?sourceChainSelector=7')).json<SearchBody>();
  expect({ data, pagination }).toEqual({
    data: [],
    pagination: { limit: 20, hasNextPage: false, cursor: null },
  });
});
