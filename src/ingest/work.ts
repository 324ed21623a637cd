/** How work that never ends shares out its time. */
import { setTimeout as delay } from 'node:timers/promises';

/** Works on all items, at most `width` at once. The first failure stops the rest before it is thrown. */
export async function inParallel<T>(
  items: readonly T[],
  width: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const waiting = [...items];
  const worker = async () => {
    try {
      for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await work(item);
    } catch (error) {
      waiting.length = 0;
      throw error;
    }
  };
  const outcomes = await Promise.allSettled(Array.from({ length: width }, worker));
  for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
}

/** Resolves after the pause, or when the signal comes. */
export async function untilLater(milliseconds: number, signal: AbortSignal): Promise<void> {
  if (milliseconds <= 0) return;
  await delay(milliseconds, undefined, { signal }).catch(() => undefined);
}
