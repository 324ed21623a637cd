/** Streams that begin in the past: what they take from other requests, and from each other. */
import { describe, expect, test } from 'vitest';
import { CATCH_UP_SHARE, createCatchUp } from '../../../src/api/live/live.ts';
import { evmAddress, makeMessage, makeSnapshot } from '../../fixtures.ts';
import { numbersUpTo, readStream, startServers, until } from './live-server.ts';

/** A scheduler by a clock that only reads, passes and pauses move. */
function createScheduler({ readMs = 10, passMs = 5 } = {}) {
  let now = 0;
  let busyMs = 0;
  const work = (ms: number) => {
    now += ms;
    busyMs += ms;
  };
  const reads: number[] = [];
  const catchUp = createCatchUp<number>(
    async (position) => {
      reads.push(position);
      work(readMs);
      return [position + 1];
    },
    {
      now: () => now,
      pause: async (ms) => {
        now += ms;
      },
    },
  );
  const passed: [client: string, changes: readonly number[]][] = [];
  const next = (client: string, position: number, isWanted = () => true) =>
    catchUp.next({
      client,
      position,
      isWanted,
      pass: (changes) => {
        work(passMs);
        passed.push([client, changes]);
      },
    });
  return { next, reads, passed, share: () => busyMs / now };
}

describe('the scheduler of catch-up reads', () => {
  test.each([1, 90])('lets %i streams take no more than their share of the time', async (streams) => {
    const { next, reads, share } = createScheduler();
    await Promise.all(
      numbersUpTo(streams).map(async (stream) => {
        for (let position = stream; position < 1_000; position += 100) await next('192.0.2.1', position);
      }),
    );
    // The last pause may not have begun.
    await next('192.0.2.1', 0);
    expect(reads.length).toBeGreaterThan(9 * streams);
    expect(share()).toBeLessThanOrEqual(CATCH_UP_SHARE + 15 / (45 * reads.length));
  });

  test('lets clients take turns, however many streams each has', async () => {
    const { next, reads } = createScheduler();
    const many = numbersUpTo(90).map((position) => next(`2001:db8::${position}`, position));
    await next('192.0.2.1', 1_000);
    await next('192.0.2.1', 1_001);
    expect(reads.indexOf(1_000)).toBeLessThanOrEqual(2);
    expect(reads.indexOf(1_001)).toBeLessThanOrEqual(5);
    await Promise.all(many);
    expect(reads).toHaveLength(92);
  });

  test('reads once for all streams at one position, and not for those that have ended', async () => {
    const { next, reads, passed } = createScheduler();
    const clients = ['192.0.2.1', '192.0.2.2', '192.0.2.3'];
    await Promise.all([
      ...clients.map((client) => next(client, 1)),
      ...clients.map((client) => next(client, 7)),
      next('192.0.2.4', 9, () => false),
    ]);
    // The first read began before the others came.
    expect(reads).toEqual([1, 1, 7]);
    const readers = passed.filter(([, [change]]) => change === 8).map(([client]) => client);
    expect(readers.toSorted()).toEqual(clients);
  });

  test('tells everybody who waits for a read that it failed, and goes on', async () => {
    let isAway = true;
    const catchUp = createCatchUp<number>(async () => {
      if (isAway) throw new Error('away');
      return [];
    });
    const turn = { client: '192.0.2.1', position: 1, isWanted: () => true, pass: () => undefined };
    const outcomes = await Promise.allSettled([catchUp.next(turn), catchUp.next(turn), catchUp.next(turn)]);
    expect(outcomes.map(({ status }) => status)).toEqual(Array(3).fill('rejected'));
    isAway = false;
    await catchUp.next(turn);
  });
});

test('streams from the beginning whose filters match nothing leave the database to others for most of the time', {
  tags: 'slow',
}, async () => {
  const [server] = await startServers({ heartbeatMs: 50 });
  const count = 1_000;
  await server.store.apply(numbersUpTo(count).map((number) => makeSnapshot(makeMessage({ number }))));
  let readMs = 0;
  server.store.observeReads((label, seconds) => {
    if (label === 'changes') readMs += seconds * 1_000;
  });
  const startedAt = performance.now();
  const path = `/v2/messages/stream?sender=${evmAddress('nobody', 1)}`;
  const readers = await Promise.all(
    numbersUpTo(12).map((place) => readStream(`${server.url}${path}&after=${place}`)),
  );
  await until(() => readers.every((reader) => reader.hasReached(count)));
  expect(readMs).toBeGreaterThan(0);
  expect(readMs / (performance.now() - startedAt)).toBeLessThan(1.2 * CATCH_UP_SHARE);
});
