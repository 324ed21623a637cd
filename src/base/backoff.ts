/** Exponential backoff with jitter, for everything that is retried. */

export interface BackoffLimits {
  /** The pause after the first failure; it doubles with each further one. */
  readonly firstPauseMs: number;
  readonly longestPauseMs: number;
}

/**
 * How long to wait after so many failures in a row, in milliseconds. The jitter takes up to half of the pause, so that
 * clients that failed together do not retry together.
 *
 * @param random from 0 to 1
 */
export function backoffMs(failures: number, { firstPauseMs, longestPauseMs }: BackoffLimits, random: number) {
  return Math.min(firstPauseMs * 2 ** Math.max(0, failures - 1), longestPauseMs) * (0.5 + random / 2);
}
