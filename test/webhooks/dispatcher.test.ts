/** Deliveries: signed, filtered, in order, again after failures, and by one server at a time. */
import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import type { DispatcherTimings } from '../../src/webhooks/dispatcher.ts';
import { numbersUpTo as numbers } from '../api/live/live-server.ts';
import { makeExecuted, makeExecutionDetails, makeMessage, makeSent, seenOn, sepolia } from '../fixtures.ts';
import { listenWith } from '../listening.ts';
import { queryOnce } from '../postgres.ts';
import {
  distinctIds,
  eventually,
  expectInOrder,
  newMessage,
  openAgain,
  openStoreForTest,
  runDispatcher,
  SECRET,
  startDelivering,
  startReceiver,
  statusesOnTheWay,
  subscriptionTo,
  untilSettled,
} from './receiver.ts';

const isFull = process.env.LANESCAN_TEST_SCALE === 'full';

describe('a delivery', () => {
  test('is accepted by the Standard Webhooks library, and rejected when anything of it was changed', async () => {
    const { store, receiver } = await startDelivering();
    await store.apply([newMessage(1)]);
    await untilSettled(store);
    const [receipt] = receiver.receipts;
    if (!receipt) throw new Error('Nothing came');
    const headers = receipt.headers as Record<string, string>;
    const library = new Webhook(SECRET);
    expect(library.verify(receipt.text, headers)).toEqual(receipt.event);
    const later = String(Number(headers['webhook-timestamp']) + 1);
    const otherKey = new Webhook(`whsec_${Buffer.alloc(32, 7).toString('base64')}`);
    for (const [webhook, text, changed] of [
      [library, receipt.text.replace('SENT', 'SUCCESS'), {}],
      [library, receipt.text, { 'webhook-id': 'ops_2' }],
      [library, receipt.text, { 'webhook-timestamp': later }],
      [otherKey, receipt.text, {}],
    ] as const)
      expect(() => webhook.verify(text, { ...headers, ...changed })).toThrow(/signature/);
    expect(headers).toMatchObject({ 'content-type': 'application/json', 'user-agent': 'Lanescan/test' });
  });

  test('is signed with each of several keys, so that a receiver can change from one to the other', async () => {
    const [store, receiver] = [await openStoreForTest(), await startReceiver()];
    const next = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;
    const subscription = subscriptionTo(receiver.url);
    const keys = [...subscription.keys, Buffer.alloc(32, 9)];
    await runDispatcher(store, [{ ...subscription, keys }]);
    await store.apply([newMessage(1)]);
    await untilSettled(store);
    const [receipt] = receiver.receipts;
    for (const secret of [SECRET, next]) {
      new Webhook(secret).verify(receipt?.text ?? '', receipt?.headers as Record<string, string>);
    }
  });

  test('tells what changed, from which status, with the whole record and a version that grows', async () => {
    const { store, receiver } = await startDelivering();
    const message = makeMessage({ number: 1 });
    await store.apply([makeSent(message)]);
    await untilSettled(store);
    await store.apply([makeExecuted(message, false), makeExecutionDetails(message, '0xd93c0665')]);
    await untilSettled(store);
    await store.apply([], [{ network: sepolia.chainSelector, blockHash: seenOn(sepolia, 1001).blockHash }]);
    await untilSettled(store);
    expect(receiver.receipts.map(({ id, event: { type, data } }) => [id, type, data.change])).toEqual([
      ['ops_1', 'message.created', 'created'],
      ['ops_2', 'message.updated', 'updated'],
      ['ops_3', 'message.removed', 'removed'],
    ]);
    const [created, updated] = receiver.receipts;
    expect(created?.event).toEqual({
      type: 'message.created',
      timestamp: expect.stringMatching(/^\d{4}-.*Z$/),
      data: { position: '1', version: 1, change: 'created', status: 'SENT', previousStatus: null, message },
    });
    expect(updated?.event.data).toMatchObject({
      version: 2,
      status: 'FAILED',
      previousStatus: 'SENT',
      message: { messageId: message.messageId, status: 'FAILED', readyForManualExecution: true },
      attempt: { outcome: 'FAILED', reason: { code: 'EnforcedPause' }, removedAt: null },
    });
    expect(receiver.receipts[2]?.event.data).not.toHaveProperty('attempt');
  });
});

test('a subscription gets what its filters match, by the status of each change, from its beginning on', async () => {
  const [store, receiver] = [await openStoreForTest(), await startReceiver()];
  await store.apply([newMessage(1, { status: 'FAILED' })]);
  const failures = subscriptionTo(receiver.url, { name: 'failures', filters: { status: 'FAILED,SUCCESS' } });
  const lane = subscriptionTo(receiver.url, {
    name: 'one-sender',
    filters: { sender: makeMessage().sender, sourceChainSelector: sepolia.chainSelector },
  });
  const stuck = subscriptionTo(receiver.url, { name: 'stuck', filters: { readyForManualExecOnly: true } });
  await runDispatcher(store, [failures, lane, stuck]);
  for (const status of ['SENT', 'FAILED', 'SUCCESS'] as const) await store.apply([newMessage(2, { status })]);
  await store.apply([newMessage(3, { sender: makeMessage().receiver })]);
  await untilSettled(store);
  const got = (name: string) =>
    receiver.receipts
      .filter(({ id }) => id.startsWith(`${name}_`))
      .map(({ event: { data } }) => `${data.position} ${data.status}`)
      .sort();
  expect({ failures: got('failures'), lane: got('one-sender'), stuck: got('stuck') }).toEqual({
    failures: ['3 FAILED', '4 SUCCESS'],
    lane: ['2 SENT', '3 FAILED', '4 SUCCESS'],
    stuck: ['3 FAILED'],
  });
});

test('a dispatcher that starts again goes on where the one before stopped: nothing lost, nothing twice', async () => {
  const { store, receiver, dispatcher, backlog } = await startDelivering();
  await store.apply([1, 2, 3].map((number) => newMessage(number)));
  await untilSettled(store);
  await dispatcher.stop();
  expect(await backlog()).toMatchObject({ isServed: false, delivered: 3, position: '3' });
  await store.apply([4, 5].map((number) => newMessage(number)));
  await runDispatcher(store, [subscriptionTo(receiver.url)]);
  await untilSettled(store);
  expect(receiver.receipts.map(({ id }) => id).sort()).toEqual(['ops_1', 'ops_2', 'ops_3', 'ops_4', 'ops_5']);
});

describe('a receiver that fails', () => {
  test('down for ten minutes, it gets everything afterwards, each message in its order', {
    tags: 'slow',
  }, async () => {
    const store = await openStoreForTest();
    const receiver = await startReceiver();
    const { port } = receiver;
    await receiver.close();
    let clock = Date.now();
    const dispatcher = await runDispatcher(store, [subscriptionTo(receiver.url)], {
      now: () => clock,
      random: Math.random,
      // As in earnest, but for how often the clock is looked at.
      timings: { firstPauseMs: 5_000, longestPauseMs: 3_600_000, retryForMs: 86_400_000 },
    });
    const messages = isFull ? 500 : 30;
    const numbers = Array.from({ length: messages }, (_, index) => index + 1);
    const step = async (ms: number) => {
      clock += ms;
      await delay(30);
    };
    for (const status of statusesOnTheWay) {
      await store.apply(numbers.map((number) => newMessage(number, { status })));
      for (let seconds = 0; seconds < 150; seconds += 10) await step(10_000);
    }
    await eventually(async () => (await store.webhooks.backlog())[0]).toMatchObject({
      ...{ pending: messages * 4, parked: 0, delivered: 0 },
      lastError: expect.stringContaining('ECONNREFUSED'),
    });
    const back = await startReceiver(port);
    for (let waited = 0; back.accepted.length === 0; waited++) {
      expect(waited).toBeLessThan(2_000);
      await step(10_000);
    }
    // The first that is accepted brings the others at once: no clock has to move for them.
    await untilSettled(store);
    expect(back.accepted).toHaveLength(messages * 4);
    expect(distinctIds(back.accepted).size).toBe(messages * 4);
    expectInOrder(back.accepted);
    expect(dispatcher.log.filter((line) => /is away|answers again/.test(line))).toHaveLength(2);
  });

  test('is tried again with pauses that double, up to a longest one, under the same id and a fresh time', async () => {
    let clock = Date.now();
    const { store, receiver, backlog } = await startDelivering({
      now: () => clock,
      timings: { firstPauseMs: 5_000, longestPauseMs: 60_000, retryForMs: 86_400_000, tickMs: 5 },
    });
    const attemptsAt: number[] = [];
    receiver.reply = () => {
      attemptsAt.push(clock);
      return { status: attemptsAt.length < 7 ? 500 : 204, body: 'out of order' };
    };
    await store.apply([newMessage(1)]);
    for (const [failures, pause] of [5, 10, 20, 40, 60, 60].entries()) {
      await eventually(() => attemptsAt.length, { interval: 5 }).toBe(failures + 1);
      // The clock stands still until the failure is written down, for the pause begins then.
      await eventually(async () => (await backlog())?.lastFailedAt?.getTime(), { interval: 5 }).toBe(clock);
      expect(await backlog()).toMatchObject({ pending: 1, lastError: 'HTTP 500: out of order' });
      clock += pause * 1_000 - 1;
      // Time for an attempt that would come too early.
      await delay(50);
      expect(attemptsAt).toHaveLength(failures + 1);
      clock += 1;
    }
    await eventually(async () => (await backlog())?.pending).toBe(0);
    expect(attemptsAt).toHaveLength(7);
    expect(distinctIds(receiver.receipts)).toEqual(new Set(['ops_1']));
    const times = receiver.receipts.map(({ headers }) => Number(headers['webhook-timestamp']));
    expect(new Set(times).size).toBe(7);
  });

  test('that asks for time with Retry-After has it, for all deliveries', async () => {
    let clock = Date.now();
    const timings = { longestPauseMs: 3_600_000, retryForMs: 86_400_000 };
    const { store, receiver, backlog } = await startDelivering({ now: () => clock, timings });
    receiver.reply = () =>
      receiver.receipts.length === 0 ? { status: 429, headers: { 'retry-after': '120' } } : { status: 200 };
    await store.apply([newMessage(1)]);
    await eventually(async () => (await backlog())?.lastError).toBe('HTTP 429');
    await store.apply([newMessage(2)]);
    clock += 119_000;
    await delay(150);
    expect(receiver.receipts).toHaveLength(1);
    clock += 2_000;
    await untilSettled(store);
    expect(receiver.accepted).toHaveLength(2);
  });

  test('does not hold up other messages, only later news of the same one', async () => {
    const { store, receiver } = await startDelivering({ timings: { retryForMs: 60_000 } });
    let isMended = false;
    receiver.reply = ({ event: { data } }) => ({
      status: data.version === 1 && !isMended ? 500 : 200,
    });
    for (const status of ['SENT', 'COMMITTED', 'SUCCESS'] as const)
      await store.apply([newMessage(1, { status }), newMessage(2, { status })]);
    await eventually(() => receiver.accepted.length).toBe(3);
    await eventually(() => receiver.receipts.length).toBeGreaterThan(5);
    expect(distinctIds(receiver.accepted)).toEqual(new Set(['ops_2', 'ops_4', 'ops_6']));
    isMended = true;
    await untilSettled(store);
    expect(receiver.accepted).toHaveLength(6);
    expectInOrder(receiver.accepted);
  });

  describe('some deliveries every time', () => {
    const poisoned = numbers(8);
    const earnest = { firstPauseMs: 5_000, longestPauseMs: 3_600_000, retryForMs: 86_400_000, tickMs: 5 };

    /** Answers the first eight messages as told, and accepts all others. */
    async function startPoisoned(timings: Partial<DispatcherTimings>) {
      const clock = { now: Date.now() };
      const { store, receiver, backlog } = await startDelivering({
        now: () => clock.now,
        timings: { ...earnest, ...timings },
      });
      const answer = { status: 413, afterMs: 0 };
      receiver.reply = ({ event: { data } }) => (data.version <= poisoned.length ? answer : { status: 200 });
      const attemptsOf = (number: number) =>
        receiver.receipts.filter(({ id }) => id === `ops_${number}`).length;
      await store.apply(poisoned.map((number) => newMessage(number)));
      await eventually(() => poisoned.map(attemptsOf)).toEqual(poisoned.map(() => 1));
      return { store, receiver, backlog, clock, answer, attemptsOf };
    }

    test('keeps the backoff of those, though it accepts others in between', async () => {
      const { store, receiver, backlog, clock, attemptsOf } = await startPoisoned({});
      const isSettled = async () => {
        const due = await store.webhooks.due('ops', new Date(clock.now), 100);
        return due.length === 0 && (await backlog())?.lag === 0;
      };
      for (let number = poisoned.length + 1; number <= poisoned.length + 42; number++) {
        await store.apply([newMessage(number)]);
        await eventually(() => attemptsOf(number), { interval: 5 }).toBe(1);
        await eventually(isSettled, { interval: 5 }).toBe(true);
        clock.now += 500;
      }
      expect(receiver.accepted).toHaveLength(42);
      // At 0, 5 and 15 s of these 21 s, and once more when the receiver, which seemed to be away, accepted the first good one.
      for (const number of poisoned) expect(attemptsOf(number)).toBeLessThanOrEqual(4);
    });

    test('still gets new ones while it answers none of the retries', async () => {
      const { store, receiver, clock, answer } = await startPoisoned({ totalMs: 600_000, stopMs: 50 });
      await store.apply([newMessage(9)]);
      await eventually(() => receiver.accepted.length).toBe(1);
      const attempts = receiver.receipts.length;
      answer.afterMs = 600_000;
      clock.now += 10_000;
      await eventually(() => receiver.receipts.length).toBeGreaterThanOrEqual(attempts + 3);
      await store.apply([newMessage(10)]);
      await eventually(() => receiver.accepted.map(({ id }) => id)).toEqual(['ops_9', 'ops_10']);
    });
  });

  test('for too long has its deliveries parked, and gets them when they are replayed', async () => {
    let later = 0;
    const { store, receiver, dispatcher, backlog } = await startDelivering({
      now: () => Date.now() + later,
      timings: { retryForMs: 3_600_000 },
    });
    receiver.reply = () => ({ status: 404, body: 'not here' });
    await store.apply([newMessage(1), newMessage(2)]);
    const attempts = (id: string) => receiver.receipts.filter((receipt) => receipt.id === id).length;
    await eventually(() => Math.min(attempts('ops_1'), attempts('ops_2'))).toBeGreaterThanOrEqual(2);
    later = 3_600_000;
    await eventually(async () => (await backlog())?.parked).toBe(2);
    const parked = /is parked after \d+ attempts: HTTP 404: not here/;
    expect(dispatcher.log.filter((line) => parked.test(line))).toHaveLength(2);
    receiver.reply = () => ({ status: 200 });
    await store.apply([newMessage(3)]);
    await untilSettled(store);
    expect(receiver.accepted.map(({ id }) => id)).toEqual(['ops_3']);
    expect(await store.webhooks.replayParked('ops', new Date())).toBe(2);
    await untilSettled(store);
    expect(distinctIds(receiver.accepted)).toEqual(new Set(['ops_1', 'ops_2', 'ops_3']));
    expect(await backlog()).toMatchObject({ parked: 0, delivered: 3 });
  });
});

describe('bounds of a subscription', () => {
  test('four deliveries are under way at a time', async () => {
    const store = await openStoreForTest();
    const held: ServerResponse[] = [];
    let isHolding = true;
    const { href } = await listenWith((_request, response) => {
      if (isHolding) held.push(response);
      else response.end();
    });
    await runDispatcher(store, [subscriptionTo(href)], { timings: { totalMs: 60_000, connectMs: 60_000 } });
    await store.apply(numbers(10).map((number) => newMessage(number)));
    await eventually(() => held.length).toBe(4);
    // Time for attempts that would be too many.
    await delay(100);
    const rows = await queryOnce(store.url, 'select attempts from webhook_delivery order by attempts desc');
    expect(rows.map(({ attempts }) => attempts)).toEqual([1, 1, 1, 1, 0, 0, 0, 0, 0, 0]);
    isHolding = false;
    for (const response of held) response.end();
    await untilSettled(store);
  });

  test('after five failures in a row it is one', { tags: 'slow' }, async () => {
    const store = await openStoreForTest();
    const underWay: number[] = [];
    let open = 0;
    const { href } = await listenWith((_request, response) => {
      underWay.push(++open);
      setTimeout(() => {
        open--;
        response.writeHead(500).end();
      }, 20);
    });
    await runDispatcher(store, [subscriptionTo(href)], { timings: { retryForMs: 60_000 } });
    await store.apply(numbers(10).map((number) => newMessage(number)));
    await eventually(() => underWay.length).toBeGreaterThan(20);
    // With the fifth failure three others may be under way.
    expect(new Set(underWay.slice(8))).toEqual(new Set([1]));
  });

  test('10,000 deliveries wait; what comes after them stays in the history until there is room', {
    tags: 'slow',
  }, async () => {
    const { store, receiver, backlog } = await startDelivering();
    await queryOnce(
      store.url,
      `insert into webhook_delivery (message_id, subscription, position, next_attempt_at)
       select sha256(number::text::bytea), 'ops', 1000000 + number, now() + interval '1 h'
       from generate_series(1, 10000) number`,
    );
    await store.apply([newMessage(1)]);
    const leasedUntil = async () =>
      (await queryOnce(store.url, 'select leased_until::text as at from webhook_subscription'))[0]?.at;
    // With each renewal of its lease the dispatcher looks for work.
    for (let renewals = 0; renewals < 3; renewals++) {
      const before = await leasedUntil();
      await eventually(leasedUntil).not.toBe(before);
    }
    expect(await backlog()).toMatchObject({ lag: 1, pending: 10_000, delivered: 0 });
    await queryOnce(store.url, 'delete from webhook_delivery where position = 1000001');
    await eventually(() => receiver.accepted.map(({ id }) => id)).toEqual(['ops_1']);
  });

  test('what is answered with 410 Gone is not sent again: it is parked, and kept for 30 days', {
    tags: 'slow',
  }, async () => {
    let clock = Date.now();
    const { store, receiver, dispatcher, backlog } = await startDelivering({ now: () => clock });
    receiver.reply = () => ({ status: 410 });
    const park = async (number: number, parked: number) => {
      await store.apply([newMessage(number)]);
      await eventually(() => dispatcher.log.filter((line) => line.includes('is parked')).length).toBe(number);
      await eventually(backlog).toMatchObject({ pending: 0, parked });
    };
    await park(1, 1);
    clock += 30 * 86_400_000;
    await park(2, 2);
    clock += 1;
    await park(3, 2);
    expect(receiver.receipts).toHaveLength(3);
  });

  test('a dispatcher that is stopped gives up what a receiver does not answer, and the next one delivers it', async () => {
    const timings = { totalMs: 600_000, stopMs: 50 };
    const { store, receiver, dispatcher, backlog } = await startDelivering({ timings });
    receiver.reply = () => ({ status: 200, afterMs: receiver.receipts.length === 0 ? 600_000 : 0 });
    await store.apply([newMessage(1)]);
    await eventually(() => receiver.receipts.length).toBe(1);
    await dispatcher.stop();
    const stopped = { pending: 1, isServed: false, lastError: 'the server was stopped' };
    expect(await backlog()).toMatchObject(stopped);
    await runDispatcher(store, [subscriptionTo(receiver.url)]);
    await untilSettled(store);
    expect(receiver.receipts.map(({ id }) => id)).toEqual(['ops_1', 'ops_1']);
  });
});

test('a subscription that is set back gets what matches behind that position again, under the same ids', async () => {
  const [store, receiver] = [await openStoreForTest(), await startReceiver()];
  await store.apply([1, 2, 3, 4].map((number) => newMessage(number)));
  await runDispatcher(store, [subscriptionTo(receiver.url)]);
  await store.apply([newMessage(5)]);
  await untilSettled(store);
  expect(receiver.receipts.map(({ id }) => id)).toEqual(['ops_5']);
  await store.webhooks.rewind('ops', '2');
  await eventually(() => receiver.receipts.length).toBe(4);
  await untilSettled(store);
  expect(receiver.receipts.map(({ id }) => id).sort()).toEqual(['ops_3', 'ops_4', 'ops_5', 'ops_5']);
});

test('two servers on one database deliver everything once between them, and the second takes over from the first', {
  tags: 'slow',
}, async () => {
  const store = await openStoreForTest();
  const receiver = await startReceiver();
  const subscriptions = [1, 2, 3].map((number) => subscriptionTo(receiver.url, { name: `sub-${number}` }));
  const first = await runDispatcher(store, subscriptions, { userAgent: 'first' });
  await runDispatcher(await openAgain(store.url), subscriptions, { userAgent: 'second' });
  const messages = isFull ? 2_000 : 100;
  for (let number = 1; number <= messages; number += 10) {
    await store.apply(Array.from({ length: 10 }, (_, i) => newMessage(number + i)));
  }
  await eventually(() => distinctIds(receiver.receipts).size).toBe(3 * messages);
  await untilSettled(store);
  expect(receiver.receipts).toHaveLength(3 * messages);
  await first.stop();
  await store.apply([newMessage(messages + 1)]);
  await untilSettled(store);
  expect(receiver.receipts).toHaveLength(3 * messages + 3);
  expect(receiver.receipts.slice(-3).map(({ headers }) => headers['user-agent'])).toEqual(
    Array(3).fill('second'),
  );
});
