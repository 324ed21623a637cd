/** The client of the API, against a real server and against servers that misbehave. */
import type { RequestListener } from 'node:http';
import { describe, expect, test } from 'vitest';
import { createClient, ResponseError, serverUrlProblem, TransportError } from '../../src/client/client.ts';
import { serverForAll } from '../api/running-server.ts';
import { makeMessage, makeSnapshot } from '../fixtures.ts';
import { listenWith } from '../listening.ts';

const messages = [3, 2, 1].map((number) =>
  makeMessage({ number, sendTimestamp: `2026-01-0${number}T00:00:00.000Z` }),
);
const ids = messages.map(({ messageId }) => messageId);

const server = serverForAll(messages);

const clientOf = async (listener: RequestListener, timeoutMs = 60_000) =>
  createClient({ url: (await listenWith(listener)).href, timeoutMs });

describe('against a server', () => {
  test('pages of a search lead to every message once, in its order', async () => {
    const found: string[] = [];
    for await (const { data } of createClient({ url: `${server.url}/v2/` }).pages({ limit: 2 }))
      found.push(...data.map(({ messageId }) => messageId));
    expect(found).toEqual(ids);
  });

  test('an error response is thrown with its code, text and parameters', async () => {
    const client = createClient({ url: server.url });
    const unknown = await client.message(`0x${'0'.repeat(64)}`).catch((error) => error);
    expect(unknown).toBeInstanceOf(ResponseError);
    expect(unknown).toMatchObject({ status: 404, code: 'MESSAGE_NOT_FOUND', isTemporary: false });
    const wrong = await client.search({ status: 'LOST' }).catch((error) => error);
    expect(wrong).toMatchObject({ code: 'INVALID_PARAMETERS', parameters: ['status'] });
    expect(wrong.message).toMatch(/status/);
  });

  test('a response with its ETag answers the next request without a body', async () => {
    const { get } = createClient({ url: server.url });
    const first = await get(`/v2/messages/${ids[0]}`);
    const etag = first.headers.get('etag') ?? '';
    expect(first).toMatchObject({ status: 200, body: { messageId: ids[0] }, isSimulated: false });
    const second = await get(`/v2/messages/${ids[0]}`, { headers: { 'If-None-Match': etag } });
    expect(second).toMatchObject({ status: 304, body: undefined, bytes: 0 });
  });

  test('an export arrives in pieces, and changes as they happen', async () => {
    const client = createClient({ url: server.url });
    let exported = '';
    for await (const bytes of client.export({ format: 'ndjson' })) exported += Buffer.from(bytes).toString();
    expect(exported.trim().split('\n')).toHaveLength(messages.length);

    const stop = new AbortController();
    const changes = client.changes({ status: 'FAILED' }, stop.signal);
    const next = changes.next();
    const failed = makeMessage({ number: 9, status: 'FAILED' });
    // The stream reports what comes after its beginning.
    const sending = setInterval(() => void server.store.apply([makeSnapshot(failed)]), 200);
    const { value } = await next.finally(() => clearInterval(sending));
    expect(value).toMatchObject({ change: 'created', message: { messageId: failed.messageId } });
    stop.abort();
    await expect(changes.next()).rejects.toThrow();
  });
});

describe('against a server that misbehaves', () => {
  test('a busy one is asked again after the wait that it names, but not without end', async () => {
    let asked = 0;
    const client = await clientOf((_request, response) => {
      asked++;
      response.writeHead(429, { 'Retry-After': '0' }).end('{"error":"RATE_LIMITED","message":"Slower."}');
    });
    await expect(client.search()).rejects.toMatchObject({ code: 'RATE_LIMITED', message: 'Slower.' });
    expect(asked).toBe(6);
  });

  test.each<[string, RequestListener, RegExp, number?]>([
    ['silence', () => undefined, /did not answer within 0\.2 s/, 200],
    ['broken JSON', (_request, response) => response.end('{"data":['), /answered with broken JSON/],
    ['a closed connection', (request) => request.socket.destroy(), /could not be read \(/],
  ])('%s is an error of transport that says so', async (_name, listener, problem, timeoutMs) => {
    const client = await clientOf(listener, timeoutMs);
    const error = await client.search().catch((thrown) => thrown);
    expect(error).toBeInstanceOf(TransportError);
    expect(error.message).toMatch(problem);
  });

  test('a stream that falls silent ends with an error', async () => {
    const client = await clientOf((_request, response) => void response.write('half'), 3_000);
    const chunks = client.export({});
    expect(Buffer.from((await chunks.next()).value ?? []).toString()).toBe('half');
    await expect(chunks.next()).rejects.toThrow(/did not answer within 3 s/);
  });
});

test('credentials of the URL go into a header, and are not part of the server’s name', async () => {
  let authorization: string | undefined;
  const { host } = await listenWith((request, response) => {
    authorization = request.headers.authorization;
    response.end('{"data":[]}');
  });
  const client = createClient({ url: `http://user:p%40ss@${host}/` });
  await client.labels();
  expect(client.server).toBe(`http://${host}`);
  expect(authorization).toBe(`Basic ${Buffer.from('user:p@ss').toString('base64')}`);
});

test.each([
  ['https://lanescan.example/v2', null],
  ['lanescan.example', 'is not a valid URL'],
  ['ftp://lanescan.example', 'begins with ftp://, not http:// or https://'],
  ['https://lanescan.example?status=FAILED', 'has a query or a fragment'],
])('the URL %s: %s', (url, problem) => {
  expect(serverUrlProblem(url)).toBe(problem);
});
