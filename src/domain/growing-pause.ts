export interface PauseBounds {
  /** The pause behind the first failure; it doubles with each one after it. */
  readonly firstPauseMs: number;
  readonly longestPauseMs: number;
}

/**
 * How long to wait after so many failures in a row: somewhere in the upper half of what doubling gives, so that what
 * failed together does not return together.
 *
 * @param random from 0 to 1
 */
export function growingPause(
  failures: number,
  { firstPauseMs, longestPauseMs }: PauseBounds,
  random: number,
): number {
  return Math.min(firstPauseMs * 2 ** Math.max(0, failures - 1), longestPauseMs) * (0.5 + random / 2);
}
