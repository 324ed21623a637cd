/** How long work may wait for endpoints that are away: for a while, and not again soon after it was in vain. */

export interface Patience {
  /** Whether to go on waiting. */
  isLeft(): boolean;
  /** What was waited for has come. */
  renew(): void;
}

/** After a wait in vain, how many times as long nobody is waited for. */
const RESTS = 10;

export function createPatience(waitMs: number): Patience {
  /** On performance.now()'s clock: since when something is waited for, and when that is allowed again. */
  let waitingSince: number | undefined;
  let restsUntil = 0;
  return {
    isLeft() {
      const now = performance.now();
      if (now < restsUntil) return false;
      waitingSince ??= now;
      if (now - waitingSince < waitMs) return true;
      waitingSince = undefined;
      restsUntil = now + RESTS * waitMs;
      return false;
    },
    renew() {
      waitingSince = undefined;
    },
  };
}
