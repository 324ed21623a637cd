/** Pauses of the loops: none lasts longer than it should, whenever it is woken. */
import { expect, onTestFinished, test, vi } from 'vitest';
import { createPause } from '../../../src/ingest/work.ts';

/** Whether a pause is over, without waiting for time to pass. */
async function isOver(pause: Promise<void>): Promise<boolean> {
  let isSettled = false;
  void pause.then(() => {
    isSettled = true;
  });
  await vi.advanceTimersByTimeAsync(0);
  return isSettled;
}

function start() {
  vi.useFakeTimers();
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const ending = new AbortController();
  return { pause: createPause(), ending, signal: ending.signal };
}

test('a pause ends after its time', async () => {
  const { pause, signal } = start();
  const waiting = pause.wait(1_000, signal);
  await vi.advanceTimersByTimeAsync(999);
  expect(await isOver(waiting)).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(await isOver(waiting)).toBe(true);
});

test('a pause without a time ends when it is woken', async () => {
  const { pause, signal } = start();
  const waiting = pause.wait(Infinity, signal);
  expect(await isOver(waiting)).toBe(false);
  pause.wake();
  expect(await isOver(waiting)).toBe(true);
});

test('what is woken before it waits does not wait, once', async () => {
  const { pause, signal } = start();
  pause.wake();
  expect(await isOver(pause.wait(Infinity, signal))).toBe(true);
  expect(await isOver(pause.wait(Infinity, signal))).toBe(false);
});

test('a pause ends with the signal, and does not begin after it', async () => {
  const { pause, ending, signal } = start();
  const waiting = pause.wait(Infinity, signal);
  ending.abort();
  expect(await isOver(waiting)).toBe(true);
  expect(await isOver(pause.wait(Infinity, signal))).toBe(true);
});
