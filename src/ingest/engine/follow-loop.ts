/**
 * The follow loop: reads what is new at the head, again and again, and does the chores in between.
 *
 * Failures are retried with exponential backoff. How the head is read, across forks where a chain has them, is up to
 * the family.
 */
import { isUnrecoverable } from '../../store/ledger/index-ledger.ts';
import { createPause, untilLater } from '../work.ts';
import type { NetworkReader } from './family.ts';
import { NodeError } from './faults.ts';
import type { Progress } from './progress.ts';
import { retryDelay, type WorkerTiming } from './timing.ts';

export interface FollowLoopOptions {
  readonly reader: NetworkReader;
  readonly progress: Progress;
  readonly timing: WorkerTiming;
  /** Milliseconds between looks at the head. */
  readonly pollEvery: number;
}

export interface FollowLoop {
  /** Whether the newest block has been read, as far as is known. */
  readonly isAtHead: boolean;
  /** Whether there is more to read, by the latest look; true before the first. */
  readonly isBehind: boolean;
  /** When the latest complete round of chores began, on performance.now()'s clock. */
  readonly choresBegunAt: number;
  /** Rounds that failed in a row, of reading the head or of the chores. */
  readonly failedRounds: number;
  /** Has the head looked at and the chores done without waiting for their time. */
  hurry(): void;
  /** Runs until the signal; throws what cannot be retried: a lost lease, or a newer schema. */
  run(signal: AbortSignal): Promise<void>;
}

export function createFollowLoop({ reader, progress, timing, pollEvery }: FollowLoopOptions): FollowLoop {
  const pause = createPause();
  let isAtHead = false;
  let isBehind = true;
  /** On performance.now()'s clock, like all times here: it never goes back. */
  let choresDueAt = 0;
  let choresBegunAt = -1;
  let failures = 0;
  let choreFailures = 0;

  /** A question that no endpoint answers is reported as a problem. It does not hold up new blocks. */
  const doChores = async (): Promise<void> => {
    const begunAt = performance.now();
    if (!progress.final || begunAt < choresDueAt) {
      if (choreFailures === 0) progress.clearProblem();
      return;
    }
    choresDueAt = begunAt + timing.choresEveryMs;
    try {
      const step = await reader.chores.work();
      if (step) await progress.record(() => step);
      const { isBehind: isMoreLeft } = reader.chores;
      if (!isMoreLeft) choresBegunAt = begunAt;
      // What was due at once was too much for one round.
      else if (step) choresDueAt = 0;
      choreFailures = 0;
      progress.clearProblem();
    } catch (error) {
      if (!(error instanceof NodeError)) throw error;
      choreFailures++;
      choresDueAt = begunAt + Math.max(timing.choresEveryMs, retryDelay(choreFailures, timing));
      progress.setProblem(error);
    }
  };

  return {
    get isAtHead() {
      return isAtHead;
    },
    get isBehind() {
      return isBehind;
    },
    get choresBegunAt() {
      return choresBegunAt;
    },
    get failedRounds() {
      return Math.max(failures, choreFailures);
    },
    hurry() {
      choresDueAt = 0;
      pause.wake();
    },
    async run(signal) {
      while (!signal.aborted) {
        try {
          const hasMore = await reader.follow();
          isBehind = hasMore;
          failures = 0;
          await doChores();
          await progress.publishWhenDue();
          isAtHead = !hasMore;
          if (!hasMore && choresDueAt > 0) await pause.wait(pollEvery, signal);
        } catch (error) {
          if (signal.aborted) return;
          if (isUnrecoverable(error)) throw error;
          failures++;
          isAtHead = false;
          progress.setProblem(error);
          await progress.publishWhenDue();
          await untilLater(retryDelay(failures, timing), signal);
        }
      }
    },
  };
}
