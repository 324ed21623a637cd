/** Bounded concurrency, and interruptible pauses. */
import { setTimeout as delay } from 'node:timers/promises';

/** Works on all items, at most `width` at once. After a failure no further item is started; then it is thrown. */
export async function inParallel<T>(
  items: readonly T[],
  width: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = [...items];
  const worker = async () => {
    try {
      for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(item);
    } catch (error) {
      queue.length = 0;
      throw error;
    }
  };
  const outcomes = await Promise.allSettled(Array.from({ length: width }, worker));
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
}

/** Resolves after the pause, or when the signal is aborted. */
export async function untilLater(pauseMs: number, signal: AbortSignal): Promise<void> {
  if (pauseMs <= 0) return;
  await delay(pauseMs, undefined, { signal }).catch(() => undefined);
}
