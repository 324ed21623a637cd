/** What the service rejects, each rejection in the one shape, naming what is wrong. */
import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import type { ErrorCode } from '../../../src/domain/errors.ts';
import { filterNames, filterTable } from '../../../src/domain/filters/filter-table.ts';
import type { FilterKind } from '../../../src/domain/filters/parameter-values.ts';
import { searchParameterNames } from '../../../src/domain/filters/search-parameters.ts';
import { evmAddress, hashOf, makeMessage } from '../../fixtures.ts';
import {
  type AskOptions,
  expectError,
  expectFreshRequestId,
  expectNoInside,
  sendBytes,
  serverForAll,
} from '../running-server.ts';

const message = makeMessage();
const withoutParameters = ['/healthz', '/readyz', '/openapi.json', '/docs'];
const messagePath = `/v2/messages/${message.messageId}`;
const messagePaths = ['/v2/messages', '/messages', messagePath, messagePath.replace('/v2', '')];
const knownPaths = [...messagePaths, ...withoutParameters, '/'];

const server = serverForAll([message]);

interface ParameterCase {
  readonly query: string;
  readonly parameter: string;
  readonly problem: RegExp;
}

const hashes = (count: number) => Array.from({ length: count }, (_, index) => hashOf(index)).join(',');
const account = evmAddress('a');

/** What each kind of filter says of texts that it does not take. */
const rejectedTexts: Record<NonNullable<FilterKind<unknown>['noun']> | 'switch', [RegExp, ...string[]]> = {
  address: [
    /takes an address/,
    ...['nonsense', '0x', '0xzz', '0', '%00', '%FF', "'%20or%201=1--", 'x'.repeat(5000)],
    ...[`%20${account}`, `${account},`, `0x${'0'.repeat(65)}`],
  ],
  network: [
    /unsigned 64-bit integer/,
    ...['sepolia', '-1', '1.0', '1e3', '0x1', '%201', '18446744073709551616', '1'.repeat(21), '%D9%A1'],
  ],
  hash: [
    /takes a transaction hash/,
    ...['0x', '0x12', 'nonsense', account, `${hashOf(1)}00`, hashOf(1).slice(0, -1), hashes(2)],
  ],
  time: [
    /ISO 8601 time with a time zone/,
    ...['yesterday', '2026', '2026-01-01', '2026-01-01T00:00:00', '2026-02-30T00:00:00Z', '1767225600'],
    '1969-12-31T23:59:59Z',
  ],
  switch: [/true or false/, 'TRUE', 'yes', '1', '0', 'true,false', '%20true'],
  statuses: [/SENT, SOURCE_FINALIZED/, 'sent', 'DONE', 'SENT;SUCCESS', 'SENT,%20SUCCESS'],
  ids: [
    /0x and 64 hexadecimal digits/,
    ...['0x12', hashOf('m').slice(2), hashOf('m').slice(0, -1), account, `${hashOf('m')},`],
  ],
  terms: [/addresses, transaction hashes and message ids/, 'what', 'hello%20world', `${account},nope`],
};

const parameterCases: readonly ParameterCase[] = [
  ...['0', '1001', '-1', '1.5', 'abc', '1e2', '0x10', '%2B5', '5%20', '%205', '1000000000000', '%D9%A3'].map(
    (value) => ({ query: `limit=${value}`, parameter: 'limit', problem: /whole number from 1 to 1000/ }),
  ),
  ...searchParameterNames
    .filter((name) => name !== 'cursor')
    .map((name) => ({ query: `${name}=`, parameter: name, problem: /empty/ })),
  ...filterNames.flatMap((parameter) => {
    const { example, kind } = filterTable[parameter];
    const [problem, ...texts] = rejectedTexts[kind.noun ?? 'switch'];
    const pair = `${parameter}=${encodeURIComponent(example)}`;
    return [
      { query: `${pair}&${pair}`, parameter, problem: /more than once/ },
      ...texts.map((text) => ({ query: `${parameter}=${text}`, parameter, problem })),
    ];
  }),
  { query: 'limit=5&limit=5', parameter: 'limit', problem: /more than once/ },
  { query: 'view=short', parameter: 'view', problem: /full or summary/ },
  { query: 'view=Summary', parameter: 'view', problem: /full or summary/ },
  { query: 'status=SUCESS', parameter: 'status', problem: /did you mean SUCCESS\?/ },
  { query: 'status=SENT,', parameter: 'status', problem: /separated by commas/ },
  {
    query: 'sentAfter=2026-01-02T00:00:00Z&sentBefore=2026-01-01T00:00:00Z',
    parameter: 'sentBefore',
    problem: /later than sentAfter/,
  },
  { query: `messageId=${hashes(101)}`, parameter: 'messageId', problem: /at most 100/ },
  { query: `q=${hashes(11)}`, parameter: 'q', problem: /at most 10/ },
  { query: 'sendr=x', parameter: 'sendr', problem: /did you mean sender\?/ },
  { query: 'Limit=5', parameter: 'Limit', problem: /did you mean limit\?/ },
  { query: 'zzzz=2', parameter: 'zzzz', problem: /it takes sender, receiver/ },
  { query: '=5', parameter: '', problem: /not a parameter/ },
  { query: '__proto__=x', parameter: '__proto__', problem: /not a parameter/ },
  { query: 'constructor=x', parameter: 'constructor', problem: /not a parameter/ },
  { query: 'limit[]=5', parameter: 'limit[]', problem: /did you mean limit\?/ },
];

describe('a wrong parameter is rejected with 400 that names it', () => {
  test.each(parameterCases)('$parameter ($query)', async ({ query, parameter, problem }) => {
    const body = expectError(await server.ask(`/v2/messages?${query}`), 400, 'INVALID_PARAMETERS');
    expect(body.details).toEqual([{ parameter, problem: expect.stringMatching(problem) }]);
    expect(body.message).toContain(parameter);
    expect(body.message.length).toBeLessThan(1000);
  });

  test('every wrong one of several is named', async () => {
    const answer = await server.ask('/v2/messages?limit=0&view=x&sender=y&foo=z&status=SENT');
    const { details } = expectError(answer, 400, 'INVALID_PARAMETERS');
    expect(details.map(({ parameter }) => parameter).sort()).toEqual(['foo', 'limit', 'sender', 'view']);
  });

  test('a thousand wrong ones get a short answer', async () => {
    const answer = await server.ask(
      `/v2/messages?${Array.from({ length: 1000 }, (_, i) => `p${i}=1`).join('&')}`,
    );
    expect(expectError(answer, 400, 'INVALID_PARAMETERS').details.length).toBeLessThanOrEqual(20);
    expect(answer.text.length).toBeLessThan(20_000);
  });

  test('paths that take no parameter say so', async () => {
    for (const path of withoutParameters) {
      const { details } = expectError(await server.ask(`${path}?limit=5`), 400, 'INVALID_PARAMETERS');
      expect(details).toEqual([{ parameter: 'limit', problem: expect.stringContaining('no parameters') }]);
    }
  });
});

interface RequestCase extends AskOptions {
  readonly path: string;
  readonly status: number;
  readonly code: ErrorCode;
  readonly contains?: string;
}

const requestCases: readonly RequestCase[] = [
  { path: '/nothing', status: 404, code: 'NOT_FOUND', contains: '/nothing' },
  { path: '/v1/messages', status: 404, code: 'NOT_FOUND' },
  { path: '/v2', status: 404, code: 'NOT_FOUND' },
  { path: '/v2/Messages', status: 404, code: 'NOT_FOUND' },
  { path: '/v2/messages/a/b', status: 404, code: 'NOT_FOUND' },
  { path: '/apple-touch-icon.png', status: 404, code: 'NOT_FOUND' },
  { path: '/%3Cscript%3E', status: 404, code: 'NOT_FOUND' },
  { path: `/${'x'.repeat(5000)}`, status: 404, code: 'NOT_FOUND' },
  { path: `/v2/messages/${hashOf('unknown')}`, status: 404, code: 'MESSAGE_NOT_FOUND' },
  { path: '/v2/messages/0x12', status: 400, code: 'INVALID_MESSAGE_ID', contains: '64 hexadecimal digits' },
  { path: `/v2/messages/${hashOf(1)}0`, status: 400, code: 'INVALID_MESSAGE_ID' },
  { path: `/v2/messages/${hashOf(1).slice(2)}`, status: 400, code: 'INVALID_MESSAGE_ID' },
  { path: `/messages/${'z'.repeat(2000)}`, status: 400, code: 'INVALID_MESSAGE_ID' },
  { path: '/v2/messages/%00', status: 400, code: 'INVALID_MESSAGE_ID' },
  { path: '/v2/messages/%zz', status: 400, code: 'BAD_REQUEST', contains: 'malformed' },
  { path: '/v2/messages/%', status: 400, code: 'BAD_REQUEST' },
  { path: '/%E0%A4%A', status: 400, code: 'BAD_REQUEST' },
  { path: '/v2/messages', headers: { accept: 'text/html' }, status: 406, code: 'NOT_ACCEPTABLE' },
  { path: '/v2/messages', headers: { accept: 'image/*' }, status: 406, code: 'NOT_ACCEPTABLE' },
  { path: '/v2/messages', headers: { accept: 'application/json;q=0' }, status: 406, code: 'NOT_ACCEPTABLE' },
  { path: '/docs', headers: { accept: 'application/json' }, status: 406, code: 'NOT_ACCEPTABLE' },
  { path: `/v2/messages?q=${'x'.repeat(40_000)}`, status: 414, code: 'URI_TOO_LONG', contains: '32000' },
  { path: `/${'x'.repeat(40_000)}`, status: 414, code: 'URI_TOO_LONG' },
  { path: `/v2/messages?q=${'x'.repeat(100_000)}`, status: 414, code: 'URI_TOO_LONG' },
  { path: '/v2/messages', headers: { 'X-Long': 'x'.repeat(100_000) }, status: 414, code: 'URI_TOO_LONG' },
];

describe('a request that cannot be answered', () => {
  test.each(requestCases)('gets $status $code', async ({ path, status, code, contains, ...options }) => {
    const answer = await server.ask(path, options);
    const body = expectError(answer, status, code);
    if (contains !== undefined) expect(body.message).toContain(contains);
    expect(answer.text.length).toBeLessThan(2000);
  });

  test('over HEAD gets the same status and headers, and no body', async () => {
    // Where the parser gives up, nobody knows yet that it was a HEAD.
    const parsed = requestCases.filter(({ path, headers }) => path.length < 50_000 && !headers?.['X-Long']);
    for (const { path, status, ...options } of parsed) {
      const head = await server.ask(path, { ...options, method: 'HEAD' });
      const get = await server.ask(path, options);
      expect(head.status, path.slice(0, 80)).toBe(status);
      expect(head.text).toBe('');
      expectFreshRequestId(head.headers);
      expect(Object.keys(head.headers).sort()).toEqual(Object.keys(get.headers).sort());
      expect(head.headers['content-length']).toBe(get.headers['content-length']);
    }
  });

  test('what people send as the client’s id of a request is not taken over', async () => {
    const { headers } = await server.ask('/healthz', { headers: { 'X-Request-ID': 'mine' } });
    expectFreshRequestId(headers);
  });
});

describe('other methods than GET, HEAD and OPTIONS', () => {
  const methods = ['POST', 'PUT', 'DELETE', 'PATCH', 'TRACE', 'PROPFIND', 'PURGE', 'M-SEARCH', 'SEARCH'];

  test.each(methods)('%s is rejected with 405 and Allow on every path there is', async (method) => {
    for (const path of [...knownPaths, '//v2//messages/', '/v2/messages?limit=5']) {
      const answer = await server.ask(path, { method });
      const { message: text } = expectError(answer, 405, 'METHOD_NOT_ALLOWED');
      expect(text).toContain(method);
      expect(answer.headers.allow).toBe('GET, HEAD, OPTIONS');
    }
  });

  test.each([...methods, 'OPTIONS'])('%s is a 404 where there is nothing', async (method) => {
    const answer = await server.ask('/nothing', { method });
    expectError(answer, 404, 'NOT_FOUND');
    expect(answer.headers.allow).toBeUndefined();
  });

  test('the body is ignored, whatever it is said to be', async () => {
    const types = ['application/json', 'text/plain', 'application/x-unheard-of', 'multipart/form-data'];
    for (const type of types) {
      const request = { headers: { 'Content-Type': type, 'Content-Length': '9' }, body: '{"broken"' };
      const answer = await server.ask('/v2/messages', { method: 'POST', ...request });
      expectError(answer, 405, 'METHOD_NOT_ALLOWED');
      expect((await server.ask('/v2/messages', request)).status).toBe(200);
    }
  });

  test('CONNECT is rejected like the others', async () => {
    const answer = await sendBytes(
      server.port,
      'CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n',
    );
    expectError(answer, 405, 'METHOD_NOT_ALLOWED');
    expect(answer.headers.allow).toBe('GET, HEAD, OPTIONS');
  });
});

describe('what is no HTTP request gets 400 in the same shape', () => {
  const cases: readonly (readonly [what: string, bytes: string | Buffer])[] = [
    ['noise', 'hello there\r\n\r\n'],
    ['random bytes', Buffer.from(Array.from({ length: 300 }, (_, index) => (index * 167 + 13) % 256))],
    ['a TLS greeting', Buffer.from('16030100a5010000a10303', 'hex')],
    ['an unknown method', 'FETCH /v2/messages HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['an unknown version', 'GET /v2/messages HTTP/9.9\r\nHost: x\r\n\r\n'],
    ['a space in the path', 'GET /v2/mess ages HTTP/1.1\r\nHost: x\r\n\r\n'],
    ['a broken header', 'GET /v2/messages HTTP/1.1\r\nHost: x\r\nBroken\r\n\r\n'],
    ['a control character in a header', 'GET /v2/messages HTTP/1.1\r\nHost: x\r\nA: \u0001\r\n\r\n'],
    ['no Host', 'GET /v2/messages HTTP/1.1\r\nConnection: close\r\n\r\n'],
  ];

  test.each(cases)('%s', async (_what, bytes) => {
    expectError(await sendBytes(server.port, bytes), 400, 'BAD_REQUEST');
  });

  test.each([100, 1_000, 10_000])('a request line of %i kB gets 414', async (kilobytes) => {
    const bytes = `GET /v2/messages?q=${'x'.repeat(kilobytes * 1000)} HTTP/1.1\r\nHost: x\r\n\r\n`;
    expectError(await sendBytes(server.port, bytes), 414, 'URI_TOO_LONG');
  });

  test('HTTP/1.0 without a Host, an absolute URL and an odd expectation are answered', async () => {
    for (const bytes of [
      'GET /v2/messages HTTP/1.0\r\n\r\n',
      'GET http://example.org/v2/messages HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n',
      'GET /v2/messages HTTP/1.1\r\nHost: x\r\nExpect: the-unexpected\r\nConnection: close\r\n\r\n',
    ]) {
      const answer = await sendBytes(server.port, bytes);
      expect(answer.status).toBe(200);
      expectFreshRequestId(answer.headers);
    }
  });

  test('a client that keeps a rejected connection open is left after a while', { tags: 'slow' }, async () => {
    await new Promise<void>((resolve, reject) => {
      const socket = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true });
      socket.on('error', reject).on('close', resolve).resume().write('no HTTP\r\n\r\n');
      const keepOpen = setInterval(() => socket.writable && socket.write('x', () => undefined), 100);
      socket.on('error', () => undefined).on('close', () => clearInterval(keepOpen));
    }).catch(({ code }) => expect(['ECONNRESET', 'EPIPE']).toContain(code));
  });
});

test('every rejection so far is in the log with its request id, and none as a fault', () => {
  const lines = server.log.map((line) => JSON.parse(line)).filter(({ msg }) => msg !== '');
  expect(lines.filter(({ level }) => level >= 50)).toEqual([]);
  expect(lines.filter(({ reqId }) => typeof reqId !== 'string')).toEqual([]);
  expect(lines.filter(({ status }) => status === 400).length).toBeGreaterThan(100);
});

test('the server goes on answering others, and no answer shows the inside', async () => {
  for (const path of [...messagePaths, '/healthz', '/readyz']) {
    const answer = await server.ask(path);
    expect(answer.status).toBe(200);
    expectNoInside(answer);
  }
});
