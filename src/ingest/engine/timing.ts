/** Timing of a network's worker: polling intervals, and exponential backoff after failures. */
import { backoffMs } from '../../base/backoff.ts';

/** Clocks differ. A head an hour ahead of ours is a fault. */
export const MAX_AHEAD_MS = 3_600_000;

export type WorkerTiming = Readonly<typeof defaultTiming>;

export const defaultTiming = {
  /** Backoff after a failure: the first pause and the longest. */
  retryMinMs: 250,
  retryMaxMs: 30_000,
  /** Backoff of a range on the ledger of failures. */
  repairMinMs: 5_000,
  repairMaxMs: 3_600_000,
  /** How often progress is published. */
  publishEveryMs: 1_000,
  /** A problem that lasts this long is reported as an error: the operator has to look. */
  escalateAfterMs: 60_000,
  /** How long endpoints that are away are waited for, before one of several is trusted alone. */
  secondOpinionMs: 60_000,
  /** At least so long between two questions to a second endpoint for what has become final, at the head. */
  settleEveryMs: 10_000,
  tasksEveryMs: 2_000,
  /** Backoff of a task that came to nothing. */
  taskMinMs: 2_000,
  taskMaxMs: 300_000,
};

/** The pause before the next attempt at the same work, after so many failures in a row. */
export function retryDelay(failures: number, { retryMinMs, retryMaxMs }: WorkerTiming): number {
  return backoffMs(failures, { firstPauseMs: retryMinMs, longestPauseMs: retryMaxMs }, Math.random());
}

/** The same for a range on the ledger of failures. */
export function repairDelay(failures: number, { repairMinMs, repairMaxMs }: WorkerTiming): number {
  return backoffMs(failures, { firstPauseMs: repairMinMs, longestPauseMs: repairMaxMs }, Math.random());
}
