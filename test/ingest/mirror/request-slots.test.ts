/** The adaptive limit of requests that are under way at once. */
import { expect, test } from 'vitest';
import { createRequestSlots, type RequestOutcome } from '../../../src/ingest/mirror/source.ts';

/** Requests that end when the test says so. */
function createRequests() {
  const slots = createRequestSlots();
  const open: ((outcome: RequestOutcome) => void)[] = [];
  let most = 0;
  const start = (count: number) =>
    Array.from({ length: count }, () =>
      slots.run(() => {
        const answer = new Promise<RequestOutcome>((resolve) => open.push(resolve));
        most = Math.max(most, open.length);
        return answer;
      }),
    );
  /** Lets everything that waits for a promise go on. */
  const settle = () => new Promise((resolve) => setImmediate(resolve));
  const answerAll = async (isOverloaded: boolean, isRateBound = false) => {
    for (const answer of open.splice(0)) answer({ isOverloaded, isRateBound });
    await settle();
  };
  return { slots, open, start, settle, answerAll, most: () => most };
}

test('it grows while requests wait for a slot and succeed, to 64 and no further', {
  tags: 'slow',
}, async () => {
  const { slots, open, start, settle, answerAll, most } = createRequests();
  const first = slots.limit;
  const all = start(20_000);
  await settle();
  expect(open).toHaveLength(first);
  while (open.length > 0) await answerAll(false);
  await Promise.all(all);
  expect(slots.limit).toBe(64);
  expect(most()).toBe(64);
});

test('it does not grow while nothing waits, nor while requests wait for the rate limit', async () => {
  const { slots, open, start, settle, answerAll } = createRequests();
  const first = slots.limit;
  for (let round = 0; round < 100; round++) {
    start(1);
    await settle();
    await answerAll(false);
  }
  expect(slots.limit).toBe(first);
  const all = start(500);
  await settle();
  while (open.length > 0) await answerAll(false, true);
  await Promise.all(all);
  expect(slots.limit).toBe(first);
});

test('it halves when the server has too much, never stops, and grows again', async () => {
  const { slots, open, start, settle, answerAll } = createRequests();
  const all = start(5_000);
  await settle();
  for (let round = 0; round < 20; round++) await answerAll(false);
  const grown = slots.limit;
  expect(grown).toBeGreaterThan(8);
  open.splice(0, 1)[0]?.({ isOverloaded: true, isRateBound: false });
  await settle();
  expect(slots.limit).toBeLessThanOrEqual(Math.ceil(grown / 2));
  for (let round = 0; round < 10; round++) await answerAll(true);
  expect(slots.limit).toBe(1);
  while (open.length > 0) await answerAll(false);
  await Promise.all(all);
  expect(slots.limit).toBeGreaterThan(8);
});

test('a slot is given back when the request throws', async () => {
  const slots = createRequestSlots();
  for (let round = 0; round < 100; round++) {
    const failing = slots.run(() => Promise.reject(new Error('away')));
    await expect(failing).rejects.toThrow('away');
  }
  const outcome = { isOverloaded: false, isRateBound: false };
  expect(await slots.run(async () => outcome)).toBe(outcome);
});
