// @module-tag slow: mirrors through every fault of a source, with pauses; guides.test.ts is the quick pass
/** The mirror against a stand-in with moods: in the end the store equals the source. */
import { expect, test } from 'vitest';
import type { Message } from '../../../src/domain/message.ts';
import type { RejectedRecord } from '../../../src/ingest/mirror/intake.ts';
import { fuji, makeMessage, makeToken, sepolia } from '../../fixtures.ts';
import {
  expectEqual,
  follow,
  isEqual,
  openStoreForTest,
  run,
  shown,
  stored,
  until,
} from './running-mirror.ts';
import { startStandIn } from './stand-in.ts';

const many = (count: number, from = 1, overrides: Partial<Message> = {}) =>
  Array.from({ length: count }, (_, index) =>
    makeMessage({ number: from + index, status: 'SUCCESS', ...overrides }),
  );

test('a source of summaries is brought whole: each record is asked for once', async () => {
  const standIn = await startStandIn(
    ...many(230),
    makeMessage({ number: 500, status: 'SUCCESS', tokenAmounts: [makeToken(sepolia, fuji, 'LINK')] }),
  );
  const store = await openStoreForTest();
  const counts = await run(standIn, store);
  expect(counts).toMatchObject({ created: 231, updated: 0, rejected: 0, missed: 0, isBackfilled: true });
  await expectEqual(store, standIn);
  const records = standIn.requests.filter(({ path }) => path.startsWith('/v2/messages/'));
  expect(records).toHaveLength(231);
  for (const { headers } of standIn.requests) expect(headers['user-agent']).toBe('lanescan/test');

  // All of it is known: a second run looks at the list alone.
  standIn.requests.length = 0;
  expect(await run(standIn, store)).toMatchObject({ created: 0, updated: 0 });
  expect(standIn.requests.every(({ path }) => path === '/v2/messages')).toBe(true);
});

test('a run that ends by itself fetches again what could still change, and counts it', async () => {
  const standIn = await startStandIn(
    makeMessage({ number: 1, status: 'SENT' }),
    makeMessage({ number: 2, status: 'SUCCESS' }),
  );
  const store = await openStoreForTest();
  expect(await run(standIn, store)).toMatchObject({ created: 2, rechecked: 0 });
  expect(await run(standIn, store)).toMatchObject({ created: 0, rechecked: 1 });
});

test('a source of whole records is brought by its pages alone', async () => {
  const standIn = await startStandIn(...many(1_150));
  standIn.isWhole = true;
  standIn.maxLimit = 500;
  const store = await openStoreForTest();
  await run(standIn, store);
  await expectEqual(store, standIn);
  expect(standIn.requests.every(({ path }) => path === '/v2/messages')).toBe(true);
});

test('errors, slow answers, broken bodies and rate limits cost time and nothing else', async () => {
  const standIn = await startStandIn(...many(150));
  const store = await openStoreForTest();
  let count = 0;
  let toldAt = Number.NEGATIVE_INFINITY;
  let asked = 0;
  const early: number[] = [];
  standIn.mood = ({ at }) => {
    // What was on its way when another one was told to wait is no breach.
    if (at > toldAt + 300 && at < toldAt + 950) early.push(at - toldAt);
    switch (++count % 11) {
      case 2:
        return { status: 500 };
      case 4:
        return 'truncated';
      case 6:
        return { status: 502, body: '<html>Bad gateway</html>' };
      case 8:
        return count < 40 ? 'silent' : undefined;
      case 10:
        if (asked >= 2) return undefined;
        asked++;
        toldAt = at;
        return { status: asked === 1 ? 429 : 503, headers: { 'Retry-After': '1' } };
      default:
        return undefined;
    }
  };
  // Silent answers end by this timeout.
  const sourceTiming = { timeoutMs: 1_000 };
  const report = await run(standIn, store, { requestsPerSecond: 150, sourceTiming });
  expect(report).toMatchObject({ created: 150, rejected: 0 });
  expect(asked).toBe(2);
  expect(early, 'nobody asks before the time that Retry-After set').toEqual([]);
  await expectEqual(store, standIn);
});

test('requests of all kinds keep the rate together', async () => {
  const standIn = await startStandIn(...many(30));
  await run(standIn, await openStoreForTest(), { requestsPerSecond: 40 });
  const times = standIn.requests.map(({ at }) => at);
  expect(times.length).toBeGreaterThan(31);
  const seconds = ((times.at(-1) ?? 0) - (times[0] ?? 0)) / 1000;
  expect((times.length - 1) / seconds).toBeLessThan(50);
});

test('bad records are told with their reasons, and stop nothing', async () => {
  const standIn = await startStandIn(...many(30));
  const bad = { ...makeMessage({ number: 100, status: 'SUCCESS' }), sequenceNumber: 'seven' };
  const odd = { ...makeMessage({ number: 101 }), status: 7 as never };
  const nameless = { ...makeMessage({ number: 102 }), messageId: '0x12' };
  const gone = makeMessage({ number: 103 });
  standIn.add(bad, odd, nameless, gone);
  standIn.mood = ({ path }) => (path.endsWith(gone.messageId) ? { status: 404 } : undefined);
  const store = await openStoreForTest();
  const rejected: RejectedRecord[] = [];
  const counts = await run(standIn, store, { reject: (record) => rejected.push(record) });
  expect(counts).toMatchObject({ created: 30, rejected: 3, missed: expect.any(Number) });
  expect(counts.missed).toBeGreaterThan(0);
  const reasons = Object.fromEntries(
    rejected.map(({ messageId, problems }) => [messageId, problems[0]?.path]),
  );
  expect(reasons).toEqual({
    [bad.messageId]: '$.sequenceNumber',
    [odd.messageId]: '$.status',
    null: '$.messageId',
  });

  // What was only missing, or wrong, comes in when it can be had, also where it was settled.
  standIn.mood = () => undefined;
  standIn.add({ ...makeMessage({ number: 101 }), status: 'SUCCESS' });
  standIn.add(makeMessage({ number: 100, status: 'SUCCESS' }));
  standIn.records.delete(nameless.messageId);
  await run(standIn, store);
  await expectEqual(store, standIn);
});

test('execution inputs come along for messages that wait for a manual execution', async () => {
  const [failed, unprovable, delivered] = (['FAILED', 'FAILED', 'SUCCESS'] as const).map((status, index) =>
    makeMessage({ number: index + 1, status }),
  ) as [Message, Message, Message];
  const standIn = await startStandIn(failed, unprovable, delivered);
  const inputs = {
    offramp: failed.onramp,
    merkleRoot: failed.messageId,
    messageBatch: [{ messageId: failed.messageId }],
  };
  standIn.executionInputs.set(failed.messageId, inputs);
  const store = await openStoreForTest();
  await run(standIn, store);
  const asked = standIn.requests.filter(({ path }) => path.endsWith('/execution-inputs'));
  // Twice each: with the record, and when what can still change was looked at again.
  expect(new Set(asked.map(({ path }) => path.split('/')[3]))).toEqual(
    new Set([failed.messageId, unprovable.messageId]),
  );
  const found = await store.executionInputs(failed.messageId.slice(2));
  expect(found).toEqual({ kind: 'mirrored', body: JSON.stringify(inputs) });
  expect(await store.executionInputs(unprovable.messageId.slice(2))).toMatchObject({ kind: 'unavailable' });
  await expectEqual(store, standIn);
});

test('it keeps up with what is new and what moves, with conditional requests', async () => {
  const now = Date.now();
  const at = (number: number, age: number, status: Message['status']) =>
    makeMessage({ number, status, sendTimestamp: new Date(now - age).toISOString() });
  const standIn = await startStandIn(
    ...many(60),
    at(1000, 86_400_000, 'SENT'),
    at(1001, 10_000, 'COMMITTED'),
    at(1002, 9_000_000, 'FAILED'),
  );
  const store = await openStoreForTest();
  const { end } = follow(standIn, store);
  await until(isEqual(store, standIn));
  // A day old: far below the pages that a round looks at once there are enough new ones.
  standIn.add(...Array.from({ length: 150 }, (_, index) => at(2000 + index, 5_000 - index, 'SENT')));
  await until(isEqual(store, standIn));
  const notModified = () => standIn.requests.filter(({ status }) => status === 304).length;
  await expect.poll(notModified).toBeGreaterThan(0);
  for (const status of ['COMMITTED', 'SUCCESS'] as const) {
    for (const message of shown(standIn)) {
      const isBehind = message.status === 'SENT' || (status === 'SUCCESS' && message.status !== 'SUCCESS');
      if (isBehind) standIn.add({ ...message, status });
    }
    await until(isEqual(store, standIn));
  }
  // One that the source learned of late, older than what is already known.
  standIn.add(at(3000, 60_000, 'SUCCESS'));
  await until(isEqual(store, standIn));
  const counts = await end();
  expect(counts.notModified).toBeGreaterThan(0);
  await expectEqual(store, standIn);

  // At rest nothing is asked for one by one any more.
  standIn.requests.length = 0;
  await run(standIn, store);
  expect(standIn.requests.filter(({ path }) => path !== '/v2/messages')).toEqual([]);
});

test('it catches up after a time away, also when it is stopped in the middle of that', async () => {
  const standIn = await startStandIn(...many(100));
  const store = await openStoreForTest();
  await run(standIn, store);
  standIn.add(...many(350, 5_000));
  // Stopped at every tenth request: the newest pages are in, those between them and the ground are not.
  for (let attempt = 0; attempt < 30; attempt++) {
    const stop = new AbortController();
    let left = 10 + attempt * 10;
    standIn.mood = () => {
      if (--left === 0) stop.abort();
      return undefined;
    };
    const counts = await run(standIn, store, { signal: stop.signal, timing: { sweepOverlapMs: 0 } });
    if (!stop.signal.aborted) {
      expect(counts.rejected).toBe(0);
      break;
    }
  }
  standIn.mood = () => undefined;
  await run(standIn, store, { timing: { sweepOverlapMs: 0 } });
  await expectEqual(store, standIn);
});

test.each([
  ['goes on by time', true],
  ['begins at the top where the source knows no times', false],
])('a cursor that expires costs no message: the walk %s', async (_how, knowsTimes) => {
  const standIn = await startStandIn(...many(420));
  standIn.isWhole = true;
  standIn.knowsTimes = knowsTimes;
  const store = await openStoreForTest();
  let lists = 0;
  standIn.mood = () => {
    if (++lists === 6) standIn.expireCursors();
    return undefined;
  };
  await run(standIn, store);
  await expectEqual(store, standIn);
  expect(standIn.requests.some(({ query }) => query.has('sentBefore'))).toBe(true);
});

test('--since ends the walk, and an earlier one continues it', async () => {
  const standIn = await startStandIn(...many(400));
  standIn.isWhole = true;
  standIn.knowsTimes = true;
  const store = await openStoreForTest();
  const since = Date.parse(makeMessage({ number: 300 }).sendTimestamp);
  await run(standIn, store, { since });
  expect(await stored(store)).toHaveLength(101);
  expect(standIn.requests.length).toBeLessThan(9);
  await run(standIn, store);
  await expectEqual(store, standIn);
});

test('another host is not followed to, an answer that is none ends it, and credentials stay secret', async () => {
  const standIn = await startStandIn(...many(3));
  const store = await openStoreForTest();
  const url = standIn.url.replace('://', '://user:pa%40ss@');
  standIn.mood = () => ({ status: 302, headers: { Location: 'http://other.example/v2/messages' } });
  await expect(run(standIn, store)).rejects.toThrow(/redirects to http:\/\/other\.example, another host/);
  standIn.mood = () => ({ status: 200, body: '{"hello":"world"}' });
  await expect(run(standIn, store)).rejects.toThrow(/not with a list of messages/);
  standIn.mood = () => ({ status: 401 });
  await expect(run(standIn, store, { url })).rejects.toThrow(/answers 401/);
  standIn.mood = () => ({ status: 500 });
  const failure = await run(standIn, store, { url }).catch((error: Error) => error);
  expect(String(failure)).toMatch(/answered 500/);
  expect(String(failure)).not.toMatch(/pa(%40|@)ss/);

  standIn.mood = ({ path }) =>
    path.startsWith('/old') ? { status: 301, headers: { Location: path.replace('/old', '') } } : undefined;
  await run(standIn, store, { url: `${url}/old/v2/` });
  await expectEqual(store, standIn);
  expect(standIn.requests.at(-1)?.headers.authorization).toBe(
    `Basic ${Buffer.from('user:pa@ss').toString('base64')}`,
  );
});
