import { setTimeout as delay } from 'node:timers/promises';

/**
 * One question for many who ask: whoever comes while it is on its way could be answered with the past, and shares the
 * next one, which begins no sooner than `everyMs` after the one before.
 */
export function createSharedQuestion<T>(ask: () => Promise<T>, everyMs = 0): () => Promise<T> {
  let current: Promise<T> | undefined;
  let next: Promise<T> | undefined;
  let begunAt = Number.NEGATIVE_INFINITY;
  const begin = (): Promise<T> => {
    begunAt = performance.now();
    const asked = ask().finally(() => {
      if (current === asked) current = undefined;
    });
    current = asked;
    return asked;
  };
  return () => {
    if (next) return next;
    const rest = begunAt + everyMs - performance.now();
    if (!current && rest <= 0) return begin();
    next = Promise.all([current?.catch(() => undefined), rest > 0 && delay(rest)]).then(() => {
      next = undefined;
      return begin();
    });
    return next;
  };
}
