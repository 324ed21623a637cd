/** How long a worker waits: between two looks, and behind whatever has failed. */
import { growingPause } from '../../domain/growing-pause.ts';

/** Milliseconds, unless it says otherwise. */
export interface WorkerPace {
  /** The first pause behind a failure, and the longest; each doubles the one before. */
  readonly soonestRetry: number;
  readonly latestRetry: number;
  /** The same for a range on the ledger of failures. */
  readonly soonestRepair: number;
  readonly latestRepair: number;
  /** How often the world is told of progress. */
  readonly tellEvery: number;
  /** A problem that lasts this long is reported as an error: the operator has to look. */
  readonly escalateAfter: number;
  readonly choresEvery: number;
  /** The same for a chore that came to nothing. */
  readonly soonestChore: number;
  readonly latestChore: number;
}

export const usualPace: WorkerPace = {
  soonestRetry: 250,
  latestRetry: 30_000,
  soonestRepair: 5_000,
  latestRepair: 3_600_000,
  tellEvery: 1_000,
  escalateAfter: 60_000,
  choresEvery: 2_000,
  soonestChore: 2_000,
  latestChore: 300_000,
};

/** The pause before the next attempt at the same work, behind so many failures in a row. */
export function retryIn(failures: number, { soonestRetry, latestRetry }: WorkerPace): number {
  return growingPause(failures, { firstPauseMs: soonestRetry, longestPauseMs: latestRetry }, Math.random());
}

/** The same for a range on the ledger of failures. */
export function repairIn(failures: number, { soonestRepair, latestRepair }: WorkerPace): number {
  return growingPause(failures, { firstPauseMs: soonestRepair, longestPauseMs: latestRepair }, Math.random());
}
