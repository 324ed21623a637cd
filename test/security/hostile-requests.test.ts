/** What attackers send to an HTTP service on purpose, and what must not come of it. */
import { createHash } from 'node:crypto';
import { connect } from 'node:net';
import type pg from 'pg';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createRateLimiter } from '../../src/api/server/rate-limit.ts';
import {
  type Answer,
  expectNoInside,
  sendBytes,
  serverForAll,
  startServerForTest,
} from '../api/running-server.ts';
import { buildExplorer } from '../browser/chromium.ts';
import { digestOfTables } from '../database.ts';
import { sampleMessages, tokenToEvm } from '../fixtures/sample-messages.ts';
import { evmAddress, hashOf, makeMessage } from '../fixtures.ts';
import { connectTo } from '../postgres.ts';
import { openApiDocument as document, sqlInjections } from './request-generator.ts';
import { openLine, type WireAnswer } from './wire.ts';

beforeAll(buildExplorer);
const server = serverForAll(sampleMessages);
let client: pg.Client;
beforeAll(async () => {
  client = await connectTo(server.store.url);
});
afterAll(() => client.end());

/** What comes true sooner or later, however busy the machine is. */
const patiently = (look: () => unknown) => vi.waitFor(look, { timeout: 120_000, interval: 50 });
const logLines = () => server.log.map((line) => JSON.parse(line));
const faults = () => logLines().filter(({ level }) => level >= 50);

describe('SQL in a parameter', () => {
  const statementsSeen = async () =>
    (await client.query(`select query from pg_stat_activity where datname = current_database()`)).rows.map(
      ({ query }) => query as string,
    );

  const parameters = Object.entries(document.paths).flatMap(([path, { get }]) =>
    get.parameters
      .filter(({ name }) => name !== 'timeoutMs' && name !== 'waitFor')
      .map((parameter) => ({ path, name: parameter.name, isInPath: parameter.in === 'path' })),
  );

  /** They take any text, and look for it. */
  const texts = new Set(['/v2/tokens symbol', '/v2/lookup text']);

  test('of every path finds nothing, changes nothing and says nothing of the database', async () => {
    expect(parameters.length).toBeGreaterThan(50);
    const before = await digestOfTables(client);
    const attacks = parameters
      .flatMap((parameter) => sqlInjections.map((injection) => ({ ...parameter, injection })))
      .values();
    const work = async () => {
      const line = openLine(server.port);
      for (const { path, name, isInPath, injection } of attacks) {
        const value = encodeURIComponent(injection);
        const target = path.replace('{messageId}', isInPath ? value : tokenToEvm.messageId);
        const query = isInPath ? '' : `?${name}=${value}`;
        const answer = await line.send(Buffer.from(`GET ${target}${query} HTTP/1.1\r\nHost: x\r\n\r\n`));
        const isText = texts.has(`${path} ${name}`);
        const { status, body } = answer as WireAnswer;
        expect({ target, name, injection, status }).toMatchObject({
          status: isText ? expect.toSatisfy((code) => code === 200 || code === 400) : 400,
        });
        const text = body.toString();
        if (status === 200) expect(JSON.parse(text)).toMatchObject({ data: [] });
        expect(text).not.toMatch(/syntax error|relation "|PostgreSQL|unterminated|SQLSTATE|\bpg_\w+ /);
      }
      line.close();
    };
    await Promise.all(Array.from({ length: 4 }, work));
    expect(await digestOfTables(client)).toEqual(before);
    for (const statement of await statementsSeen()) {
      for (const injection of sqlInjections.filter(({ length }) => length > 8)) {
        expect(statement).not.toContain(injection);
      }
    }
    expect(faults()).toEqual([]);
  });
});

describe('line ends in what is sent', () => {
  const injections = [
    '%0d%0aX-Injected:%20yes',
    '%0aX-Injected:yes',
    '%E5%98%8A%E5%98%8DX-Injected:yes',
    '%0d%0a%0d%0a<html>',
  ];

  const places = [
    ...['sender=HERE', 'cursor=HERE', 'limit=2&view=HERE', 'HERE=1'].map((query) => `/v2/messages?${query}`),
    ...['/v2/messages/HERE', '/HERE', '/assets/HERE', '/message/HERE', '/v2/messages/export?format=HERE'],
  ];

  test.each([
    ...places.flatMap((place) => injections.map((text) => place.replace('HERE', text))),
    '/%zz%0d%0aX-Injected:yes',
  ])('make no header and no line in the log: %s', async (target) => {
    const lines = server.log.length;
    const { headers } = await server.ask(target);
    expect(Object.keys(headers)).not.toContain('x-injected');
    await patiently(() => expect(server.log.length).toBe(lines + 1));
    const line = server.log[lines] ?? '';
    expect(line.indexOf('\n')).toBe(line.length - 1);
    expect(JSON.parse(line)).toMatchObject({ msg: 'request', reqId: headers['x-request-id'], url: target });
  });

  test('in raw headers end the request or stay in their header', async () => {
    const agents = { 'a\rX-Injected: yes': 400, '{"level":60}': 200 };
    for (const [agent, status] of Object.entries(agents)) {
      const bytes = `GET /healthz HTTP/1.1\r\nHost: x\r\nUser-Agent: ${agent}\r\nConnection: close\r\n\r\n`;
      expect((await sendBytes(server.port, bytes)).status).toBe(status);
    }
    for (const line of server.log) expect(JSON.parse(line).level).toBeLessThan(50);
  });
});

test.each([
  '/assets/../index.html',
  '/assets/../../../package.json',
  '/assets/..%2f..%2f..%2fpackage.json',
  '/assets/%2e%2e/%2e%2e/package.json',
  '/assets/..%5c..%5cpackage.json',
  '/assets/....//....//package.json',
  '/assets/%252e%252e%252fpackage.json',
  '/assets/%c0%ae%c0%ae%2fpackage.json',
  '/assets/..;/..;/package.json',
  '/assets//etc/passwd',
  '/assets/%2fetc%2fpasswd',
  '/assets/.',
  '/assets/index.html%00.js',
  '/assets/constructor',
  '/assets/__proto__',
  '/../src/cli/config.ts',
  '/.env',
  '/lanescan.yaml',
  '/v2/../../../etc/passwd',
])('%s leads to no file', async (target) => {
  const answer = await server.ask(target);
  expect([400, 404]).toContain(answer.status);
  expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
  expect(answer.text).not.toMatch(/root:|"dependencies"|<!doctype/i);
});

describe('request smuggling', () => {
  const hidden = 'GET /hidden HTTP/1.1\r\nHost: x\r\n\r\n';
  const post = (headers: string, body = hidden) =>
    `POST /v2/messages HTTP/1.1\r\nHost: x\r\n${headers}\r\n\r\n${body}`;
  const end = `0\r\n\r\n${hidden}`;
  const coded = (coding: string, body = end) => post(`Transfer-Encoding: ${coding}`, body);
  const chunked = (body: string) => coded('chunked', `${body}${hidden}`);
  const get = (headers: string) => `GET /healthz HTTP/1.1\r\nHost: x${headers}\r\n\r\n${hidden}`;

  /** Two readers may find the end of these at different places. One answer, the connection closed, nothing behind it read. */
  test.each([
    ['a length and chunks', post(`Content-Length: ${5 + hidden.length}\r\nTransfer-Encoding: chunked`, end)],
    ['chunks and a length', coded('chunked\r\nContent-Length: 4')],
    ['two lengths', post(`Content-Length: 0\r\nContent-Length: ${hidden.length}`)],
    ['two lengths in one', post(`Content-Length: 0, ${hidden.length}`)],
    ['a negative length', post('Content-Length: -1')],
    ['a length with a sign', post('Content-Length: +0')],
    ['a length in hexadecimal', post('Content-Length: 0x0')],
    ['a length too large for a number', post(`Content-Length: ${'9'.repeat(40)}`)],
    ['a space before the colon', post('Content-Length : 0')],
    ['a folded header', post('X: y\r\n Transfer-Encoding: chunked')],
    ['a header without a name', post(': x')],
    ['chunked twice', coded('chunked\r\nTransfer-Encoding: chunked')],
    ['chunked before another coding', coded('chunked, identity')],
    ['a coding that nobody knows', coded('xchunked')],
    ['chunked in quotes', coded('"chunked"')],
    ['a chunk of a wrong length', chunked('3\r\nabcdef\r\n0\r\n\r\n')],
    ['a chunk whose length is no number', chunked('zz\r\nabc\r\n0\r\n\r\n')],
    ['a chunk with a bare newline', chunked('1\na\n0\n\n')],
    ['a chunk too large for a number', chunked(`${'f'.repeat(20)}\r\nabc\r\n0\r\n\r\n`)],
    ['a newline without a carriage return', `GET /healthz HTTP/1.1\nHost: x\n\n${hidden}`],
    ['a carriage return alone', get('\rX: y')],
    ['NUL in a header', get('\r\nX: a\u0000b')],
  ])('%s gets one answer, and what follows is not read', async (_what, bytes) => {
    const before = logLines().filter(({ url }) => url === '/hidden').length;
    const { text, status } = await sendBytes(server.port, bytes);
    expect([400, 405]).toContain(status);
    expect(text).not.toContain('HTTP/1.1');
    expect(logLines().filter(({ url }) => url === '/hidden')).toHaveLength(before);
  });

  test('an honest body is not taken for a request', async () => {
    const honest = post(`Content-Length: ${hidden.length}`);
    const { text } = await sendBytes(
      server.port,
      `${honest}GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
    );
    expect(text).toContain('METHOD_NOT_ALLOWED');
    expect(logLines().filter(({ url }) => url === '/hidden')).toEqual([]);
  });
});

describe('headers that a cache does not look at', () => {
  const poisons: Readonly<Record<string, string>> = {
    Host: 'evil.example',
    'X-Forwarded-Host': 'evil.example',
    'X-Forwarded-Proto': 'javascript',
    'X-Forwarded-Port': '1337',
    'X-Forwarded-Prefix': '/evil',
    'X-Forwarded-Server': 'evil.example',
    'X-Forwarded-For': '6.6.6.6',
    'X-Host': 'evil.example',
    'X-Original-URL': '/metrics',
    'X-Rewrite-URL': '/metrics',
    'X-HTTP-Method-Override': 'DELETE',
    'X-Method-Override': 'DELETE',
    Forwarded: 'host=evil.example;proto=evil',
    Origin: 'https://evil.example',
    Referer: 'https://evil.example/',
    'User-Agent': '<script>',
    'Accept-Language': 'evil',
    Cookie: 'evil=1',
    Range: 'bytes=0-3',
  };
  const { messageId } = tokenToEvm;
  const paths = [
    ...['/', '/docs', '/openapi.json', '/v2/messages?limit=2', '/v2/lanes', '/v2/networks', '/nothing'],
    ...[`/v2/messages/${messageId}`, `/message/${messageId}`],
  ];
  /** Everything that may be kept, but what differs with every request. */
  const lasting = ({ status, headers, text }: Answer) => {
    const { date: _date, 'x-request-id': id, ...rest } = headers;
    return { status, rest, text: text.replaceAll(String(id), 'ID') };
  };

  test.each(paths)('change nothing of %s', async (path) => {
    const plain = lasting(await server.ask(path));
    expect(JSON.stringify(plain)).not.toMatch(/evil/);
    for (const [name, value] of Object.entries(poisons)) {
      const answer = lasting(await server.ask(path, { headers: { [name]: value } }));
      expect({ name, ...answer }).toEqual({ name, ...plain });
    }
    const absolute = await server.ask(`http://evil.example${path}`);
    expect(lasting(absolute).text).not.toMatch(/href="[^"]*evil/);
    expect(absolute.headers.link ?? '').not.toContain('evil');
  });
});

test('keys that every object has are unknown parameters, and leave objects as they are', async () => {
  const before = Object.getOwnPropertyNames(Object.prototype);
  const keys = '__proto__ __proto__[x] constructor.prototype.x constructor[prototype][x] toString'.split(' ');
  for (const path of Object.keys(document.paths).filter((each) => !each.includes('{'))) {
    for (const key of keys) {
      const { status } = await server.ask(`${path}?${encodeURIComponent(key)}=polluted`);
      expect({ path, key, status }).toMatchObject({ status: 400 });
    }
  }
  expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(before);
  expect(({} as { x?: string }).x).toBeUndefined();
});

describe('an API key', () => {
  const sha256 = (key: string) => createHash('sha256').update(key).digest('hex');
  const limiter = createRateLimiter({
    rateLimit: false,
    apiKeys: ['first', 'second', 'third'].map((name) => ({
      name,
      sha256: sha256(name),
      perSecond: 1,
      burst: 1,
    })),
  });

  /** By how it is compared, not by the clock: every key of the configuration, as digests of one length, in constant time. */
  test.each([
    ['right', 'second'],
    ['wrong', 'nobody'],
    ['almost right', 'secone'],
    ['long', 's'.repeat(512)],
  ])('that is %s is compared with all of them as digests in constant time', async (_what, key) => {
    const crypto = await import('node:crypto');
    const compare = vi.spyOn(crypto.default, 'timingSafeEqual');
    const { syncBuiltinESMExports } = await import('node:module');
    syncBuiltinESMExports();
    try {
      limiter.take('6.6.6.6', { 'x-api-key': key });
      expect(compare).toHaveBeenCalledTimes(3);
      for (const [known, given] of compare.mock.calls) {
        expect([known.byteLength, given.byteLength]).toEqual([32, 32]);
        expect(Buffer.from(given as Buffer).toString('hex')).toBe(sha256(key));
      }
    } finally {
      compare.mockRestore();
      syncBuiltinESMExports();
    }
  });
});

test('URLs that cannot be read count against the limit like any other', async () => {
  const limited = await startServerForTest([], { rateLimit: { perSecond: 0.01, burst: 3, loopback: true } });
  const statuses: number[] = [];
  for (let n = 0; n < 4; n++) statuses.push((await limited.ask('/%zz')).status);
  expect(statuses).toEqual([400, 400, 400, 429]);
});

test('clients that do not wait for their answer are no failure of the service, and nothing is kept of them', async () => {
  const targets = [
    '/v2/messages/export',
    '/v2/messages?gone=no',
    '/v2/messages',
    `/v2/messages/${hashOf('gone')}?waitFor=SENT&timeoutMs=60000`,
    '/v2/messages/stream',
  ];
  await client.query('begin; lock table message in access exclusive mode');
  const lines = server.log.length;
  const sockets = targets.map((target) => {
    const socket = connect(server.port, '127.0.0.1');
    socket.on('error', () => undefined).write(`GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`);
    return socket;
  });
  const waiting = `select from pg_locks where not granted
    and database = (select oid from pg_database where datname = current_database())`;
  try {
    // Two of them need no table: one is rejected, and the stream begins.
    await patiently(async () => expect((await client.query(waiting)).rowCount).toBeGreaterThanOrEqual(3));
    for (const socket of sockets) socket.destroy();
    await patiently(() => expect(logLines().slice(lines)).toHaveLength(targets.length));
  } finally {
    await client.query('rollback');
  }
  const told = new Map(logLines().map(({ url, status }) => [url, status]));
  expect(targets.map((target) => told.get(target))).toEqual([499, 400, 499, 499, 200]);
  await patiently(async () => {
    const { text } = await server.ask('/metrics');
    expect(text).toMatch(/^lanescan_http_requests_in_flight 1$/m);
    expect(text).not.toMatch(/status="500"/);
  });
  expect(faults()).toEqual([]);
});

test('nothing so far was a fault of the service, and no answer showed the inside', async () => {
  expect(faults()).toEqual([]);
  expectNoInside(await server.ask(`/v2/messages?sender=${evmAddress('nobody')}`));
  expect((await server.ask(`/v2/messages/${makeMessage({ number: 1 }).messageId}`)).status).toBe(200);
});
