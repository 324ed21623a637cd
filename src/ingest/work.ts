/** Bounded concurrency, and interruptible pauses. */
import { setTimeout as delay } from 'node:timers/promises';

/** Works on all items, at most `width` at once. After a failure no further item is started; then it is thrown. */
export async function inParallel<T>(items: readonly T[], width: number, work: (item: T) => Promise<void>) {
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

/** A pause that another part of the program can end. */
export function createPause() {
  let isWoken = false;
  let resume: () => void = () => undefined;
  /** Ends the pause; without one, the next pause ends at once, so that no call is lost. */
  const wake = () => {
    isWoken = true;
    resume();
  };
  return {
    wake,
    /** Resolves after `pauseMs` (Infinity: no timer), with the next `wake`, or when the signal is aborted. */
    async wait(pauseMs: number, signal: AbortSignal): Promise<void> {
      const timer = Number.isFinite(pauseMs) ? setTimeout(wake, pauseMs) : undefined;
      signal.addEventListener('abort', wake);
      await new Promise<void>((resolve) => {
        resume = resolve;
        if (isWoken || signal.aborted) resolve();
      });
      signal.removeEventListener('abort', wake);
      clearTimeout(timer);
      isWoken = false;
    },
  };
}
