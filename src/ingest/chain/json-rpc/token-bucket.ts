/** How fast we may ask: a steady rate, one second's worth at once, and a pause whenever the other side wants one. */

export interface TokenBucket {
  /** Takes so many places in the queue; returns the milliseconds until they may be used. */
  reserve(places: number): number;
  /** Nobody may ask for so many milliseconds from now. */
  pause(milliseconds: number): void;
  /** Milliseconds that are left of a pause; 0 when there is none. */
  pauseLeft(): number;
}

/** @param clock milliseconds that only ever grow */
export function createTokenBucket(perSecond: number, clock: () => number): TokenBucket {
  const capacity = Math.max(1, perSecond);
  let tokens = capacity;
  let filledAt = clock();
  let pausedUntil = 0;
  return {
    reserve(places) {
      const now = clock();
      tokens = Math.min(capacity, tokens + ((now - filledAt) / 1000) * perSecond);
      filledAt = now;
      // Below zero are the places of those who wait already.
      tokens -= places;
      return tokens >= 0 ? 0 : (-tokens / perSecond) * 1000;
    },
    pause(milliseconds) {
      pausedUntil = Math.max(pausedUntil, clock() + milliseconds);
    },
    pauseLeft: () => Math.max(0, pausedUntil - clock()),
  };
}
