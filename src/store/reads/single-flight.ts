import { setTimeout as delay } from 'node:timers/promises';

/**
 * Single-flight: concurrent callers share one query.
 *
 * A caller never gets the result of a query that began before it called, because that could be older than what the caller
 * knows. So callers that come while a query is in flight share the next one. Queries begin at least `intervalMs` apart.
 */
export function createSingleFlight<T>(query: () => Promise<T>, intervalMs = 0): () => Promise<T> {
  let current: Promise<T> | undefined;
  let next: Promise<T> | undefined;
  let begunAt = Number.NEGATIVE_INFINITY;
  const begin = (): Promise<T> => {
    begunAt = performance.now();
    const running = query().finally(() => {
      if (current === running) current = undefined;
    });
    current = running;
    return running;
  };
  return () => {
    if (next) return next;
    const pauseMs = begunAt + intervalMs - performance.now();
    if (!current && pauseMs <= 0) return begin();
    next = Promise.all([current?.catch(() => undefined), pauseMs > 0 && delay(pauseMs)]).then(() => {
      next = undefined;
      return begin();
    });
    return next;
  };
}

/** Callers share the run that is in flight. */
export function createSharedRun<T>(run: () => Promise<T>): () => Promise<T> {
  let current: Promise<T> | undefined;
  return () => {
    current ??= run().finally(() => {
      current = undefined;
    });
    return current;
  };
}
