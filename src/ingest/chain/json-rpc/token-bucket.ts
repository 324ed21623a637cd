/** Rate limit of requests to an endpoint: a token bucket with a burst of one second, and a pause on demand of the endpoint. */

export interface TokenBucket {
  /** Takes so many tokens; returns the milliseconds until they are there. */
  reserve(count: number): number;
  /** No request for this long from now on. */
  pause(ms: number): void;
  /** Milliseconds that are left of a pause; 0 without one. */
  pauseLeftMs(): number;
}

/** @param clock milliseconds that only ever grow */
export function createTokenBucket(perSecond: number, clock: () => number): TokenBucket {
  const capacity = Math.max(1, perSecond);
  let tokens = capacity;
  let filledAt = clock();
  let pausedUntil = 0;
  return {
    reserve(count) {
      const now = clock();
      tokens = Math.min(capacity, tokens + ((now - filledAt) / 1000) * perSecond);
      filledAt = now;
      // A negative count is what earlier callers wait for already.
      tokens -= count;
      return tokens >= 0 ? 0 : (-tokens / perSecond) * 1000;
    },
    pause(ms) {
      pausedUntil = Math.max(pausedUntil, clock() + ms);
    },
    pauseLeftMs: () => Math.max(0, pausedUntil - clock()),
  };
}
