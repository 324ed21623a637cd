/** `waitFor`: the answer comes when the message has got there, and waiting costs nothing. */
import { request as httpRequest } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { Message } from '../../../src/domain/message.ts';
import { makeExecuted, makeMessage, makeRange, makeSent, makeSnapshot } from '../../fixtures.ts';
import type { ErrorBody } from '../running-server.ts';
import { startServers, until, untilFollowing } from './live-server.ts';

const message = makeMessage();
const path = `/v2/messages/${message.messageId}`;

async function wait(url: string, query: string) {
  const startedAt = performance.now();
  const response = await fetch(`${url}${path}?${query}`);
  return {
    status: response.status,
    outcome: response.headers.get('x-lanescan-wait'),
    retryAfter: response.headers.get('retry-after'),
    cacheControl: response.headers.get('cache-control'),
    body: (await response.json()) as Message & ErrorBody,
    ms: performance.now() - startedAt,
  };
}

const untilWaiting = (server: { readonly url: string }, count = 1) => untilFollowing(server, count);

describe('a wait ends', () => {
  test('at once where the message has the status already', async () => {
    const [server] = await startServers({});
    await server.store.apply([makeSent(message), makeExecuted(message, true)]);
    const answer = await wait(server.url, 'waitFor=SUCCESS,FAILED');
    expect(answer).toMatchObject({ status: 200, outcome: 'reached', cacheControl: 'no-store' });
    expect(answer.body).toEqual(await (await fetch(`${server.url}${path}`)).json());
  });

  test('when the status is reached, whichever process wrote it', async () => {
    const [server, other] = await startServers({}, {});
    await other.store.apply([makeSent(message)]);
    const answer = wait(server.url, 'waitFor=SUCCESS,FAILED&timeoutMs=60000');
    await untilWaiting(server);
    await other.store.apply([makeRange('Committed', message, 1, 1)]);
    await other.store.apply([makeExecuted(message, false)]);
    expect(await answer).toMatchObject({ status: 200, outcome: 'reached', body: { status: 'FAILED' } });
  });

  test('when the message has gone past all of the statuses', async () => {
    const [server] = await startServers({});
    await server.store.apply([makeSent(message)]);
    const answer = wait(server.url, 'waitFor=COMMITTED&timeoutMs=60000');
    await untilWaiting(server);
    await server.store.apply([makeExecuted(message, true)]);
    expect(await answer).toMatchObject({ outcome: 'passed', body: { status: 'SUCCESS' } });
    expect(await wait(server.url, 'waitFor=SENT')).toMatchObject({ outcome: 'passed' });
  });

  test('at the timeout with the state of that moment', { tags: 'slow' }, async () => {
    const [server] = await startServers({});
    await server.store.apply([makeSent(message)]);
    const answer = wait(server.url, 'waitFor=SUCCESS&timeoutMs=5000');
    await untilWaiting(server);
    await server.store.apply([makeRange('Committed', message, 1, 1)]);
    const given = await answer;
    expect(given).toMatchObject({ status: 200, outcome: 'timeout', body: { status: 'COMMITTED' } });
    expect(given.ms).toBeGreaterThan(4_990);
    expect(await wait(server.url, 'waitFor=SUCCESS&timeoutMs=1')).toMatchObject({ outcome: 'timeout' });
  });

  test('for a message that was not known and appears', async () => {
    const [server] = await startServers({});
    const answer = wait(server.url, 'waitFor=SENT,SUCCESS&timeoutMs=60000');
    await untilWaiting(server);
    await server.store.apply([makeSnapshot(message)]);
    expect(await answer).toMatchObject({ status: 200, outcome: 'reached', body: message });
  });

  test('with 404 for one that is not there at the timeout, also when it was removed meanwhile', {
    tags: 'slow',
  }, async () => {
    const [server] = await startServers({});
    expect(await wait(server.url, 'waitFor=SENT&timeoutMs=50')).toMatchObject({
      status: 404,
      body: { error: 'MESSAGE_NOT_FOUND' },
    });
    const sent = makeSent(message);
    await server.store.apply([sent]);
    const answer = wait(server.url, 'waitFor=SUCCESS&timeoutMs=5000');
    await untilWaiting(server);
    await server.store.apply([], [sent.seen]);
    expect(await answer).toMatchObject({ status: 404 });
  });

  test('when the server stops, with the state of that moment, and does not hold it up', async () => {
    const [server] = await startServers({});
    await server.store.apply([makeSent(message)]);
    const answers = [1, 2, 3].map(() => wait(server.url, 'waitFor=SUCCESS&timeoutMs=60000'));
    await untilWaiting(server, 3);
    await server.close();
    for (const answer of await Promise.all(answers)) {
      expect(answer).toMatchObject({ status: 200, outcome: 'stopping', body: { status: 'SENT' } });
    }
  });
});

test('a HEAD waits too', { tags: 'slow' }, async () => {
  const [server] = await startServers({});
  await server.store.apply([makeSent(message)]);
  const response = await fetch(`${server.url}${path}?waitFor=SUCCESS&timeoutMs=100`, { method: 'HEAD' });
  expect(response.status).toBe(200);
  expect(response.headers.get('x-lanescan-wait')).toBe('timeout');
});

test('places are limited by address and in all, and are given back', { tags: 'slow' }, async () => {
  const [server, crowded] = await startServers({ waitersPerAddress: 2 }, { waiters: 1 });
  await server.store.apply([makeSent(message)]);
  const waiting = [1, 2].map(() => wait(server.url, 'waitFor=SUCCESS&timeoutMs=60000'));
  const alone = wait(crowded.url, 'waitFor=SUCCESS&timeoutMs=60000');
  await Promise.all([untilWaiting(server, 2), untilWaiting(crowded)]);
  const rejected = await wait(server.url, 'waitFor=SUCCESS');
  expect(rejected).toMatchObject({ status: 429, retryAfter: '2', body: { error: 'TOO_MANY_CONNECTIONS' } });
  expect(rejected.body.message).toMatch(/Your address has 2 waiting requests/);
  expect((await wait(crowded.url, 'waitFor=SUCCESS')).body.message).toMatch(/All 1 waiting requests/);
  expect((await fetch(`${server.url}${path}`)).status).toBe(200);
  await server.store.apply([makeExecuted(message, true)]);
  await Promise.all([...waiting, alone]);
  expect(await wait(server.url, 'waitFor=SUCCESS')).toMatchObject({ outcome: 'reached' });
  expect(await wait(crowded.url, 'waitFor=SUCCESS')).toMatchObject({ outcome: 'reached' });
});

test('a client that goes away gives its place back', async () => {
  const [server] = await startServers({ waitersPerAddress: 1 });
  await server.store.apply([makeSent(message)]);
  for (let round = 0; round < 3; round++) {
    const request = httpRequest(`${server.url}${path}?waitFor=SUCCESS&timeoutMs=60000`, { agent: false });
    request.on('error', () => undefined);
    request.end();
    await untilWaiting(server);
    expect((await wait(server.url, 'waitFor=SUCCESS&timeoutMs=1')).status).toBe(429);
    request.destroy();
    await until(async () => (await wait(server.url, 'waitFor=SUCCESS&timeoutMs=1')).status === 200);
  }
});

test('a hundred who wait ask the database no more than one: the position of the store, about once a second', {
  tags: 'slow',
}, async () => {
  const [server] = await startServers({});
  await server.store.apply([makeSent(message)]);
  const answers = Array.from({ length: 100 }, () => wait(server.url, 'waitFor=SUCCESS&timeoutMs=60000'));
  await untilWaiting(server, 100);
  await delay(500);
  const reads: string[] = [];
  const end = server.store.observeReads((label) => reads.push(label));
  await until(() => reads.length >= 2);
  end();
  expect(new Set(reads)).toEqual(new Set(['position']));
  await server.store.apply([makeExecuted(message, true)]);
  for (const answer of await Promise.all(answers)) expect(answer.outcome).toBe('reached');
});

test('a wait that makes no sense is rejected with what it takes', async () => {
  const [server] = await startServers({});
  for (const [query, message] of [
    ['waitFor=DONE', /waitFor takes SENT, .*"DONE" is not a status/],
    ['waitFor=', /waitFor is empty/],
    ['waitFor=SUCCESS&timeoutMs=0', /timeoutMs takes a whole number from 1 to 60000/],
    ['waitFor=SUCCESS&timeoutMs=60001', /timeoutMs takes a whole number from 1 to 60000/],
    ['waitFor=SUCCESS&timeoutMs=1e3', /timeoutMs takes a whole number/],
    ['timeoutMs=1000', /timeoutMs is only allowed with waitFor/],
    ['waitfor=SUCCESS', /did you mean waitFor\?/],
    ['waitFor=SUCCESS&waitFor=FAILED', /waitFor is given more than once/],
  ] as const) {
    const { status, body } = await wait(server.url, query);
    expect({ query, status, error: body.error }).toEqual({ query, status: 400, error: 'INVALID_PARAMETERS' });
    expect(body.message).toMatch(message);
  }
});
