/**
 * The follow loop: reads what is new at the head, again and again, and does the tasks in between.
 *
 * Failures are retried with exponential backoff. How the head is read, across forks where a chain has them, is up to
 * the family.
 */
import { isUnrecoverable } from '../../store/ledger/index-ledger.ts';
import { createPause, untilLater } from '../work.ts';
import type { NetworkReader } from './family.ts';
import { NodeError } from './faults.ts';
import { retryDelay, type WorkerTiming } from './timing.ts';

export interface FollowLoopOptions {
  readonly reader: NetworkReader;
  readonly timing: WorkerTiming;
  /** Milliseconds between looks at the head. */
  readonly pollEvery: number;
}

export interface FollowLoop {
  /** Whether the newest block has been read, as far as is known. */
  readonly isAtHead: boolean;
  /** Whether there is more to read, by the latest look; true before the first. */
  readonly isBehind: boolean;
  /** When the latest complete round of tasks began, on performance.now()'s clock. */
  readonly tasksStartedAt: number;
  /** Rounds that failed in a row, of reading the head or of the tasks. */
  readonly failedRounds: number;
  /** Has the head looked at and the tasks done without waiting for their time. */
  runNow(): void;
  /** Runs until the signal; throws what cannot be retried: a lost lease, or a newer schema. */
  run(signal: AbortSignal): Promise<void>;
}

export function createFollowLoop({ reader, timing, pollEvery }: FollowLoopOptions): FollowLoop {
  const { head, recorder, problem } = reader.progress;
  const pause = createPause();
  let isAtHead = false;
  let isBehind = true;
  /** On performance.now()'s clock, like all times here: it never goes back. */
  let tasksDueAt = 0;
  let tasksStartedAt = -1;
  let failures = 0;
  let taskFailures = 0;

  /** A question that no endpoint answers is reported as a problem. It does not hold up new blocks. */
  const doTasks = async (): Promise<void> => {
    const begunAt = performance.now();
    if (!head.final || begunAt < tasksDueAt) {
      if (taskFailures === 0) problem.clear();
      return;
    }
    tasksDueAt = begunAt + timing.tasksEveryMs;
    try {
      const step = await reader.tasks.work();
      if (step) await recorder.record(() => step);
      const { isBehind: isMoreLeft } = reader.tasks;
      if (!isMoreLeft) tasksStartedAt = begunAt;
      // What was due at once was too much for one round.
      else if (step) tasksDueAt = 0;
      taskFailures = 0;
      problem.clear();
    } catch (error) {
      if (!(error instanceof NodeError)) throw error;
      taskFailures++;
      tasksDueAt = begunAt + Math.max(timing.tasksEveryMs, retryDelay(taskFailures, timing));
      problem.set(error);
    }
  };

  return {
    get isAtHead() {
      return isAtHead;
    },
    get isBehind() {
      return isBehind;
    },
    get tasksStartedAt() {
      return tasksStartedAt;
    },
    get failedRounds() {
      return Math.max(failures, taskFailures);
    },
    runNow() {
      tasksDueAt = 0;
      pause.wake();
    },
    async run(signal) {
      while (!signal.aborted) {
        try {
          const hasMore = await reader.follow();
          isBehind = hasMore;
          failures = 0;
          await doTasks();
          await recorder.publishWhenDue();
          isAtHead = !hasMore;
          if (!hasMore && tasksDueAt > 0) await pause.wait(pollEvery, signal);
        } catch (error) {
          if (signal.aborted) return;
          if (isUnrecoverable(error)) throw error;
          failures++;
          isAtHead = false;
          problem.set(error);
          await recorder.publishWhenDue();
          await untilLater(retryDelay(failures, timing), signal);
        }
      }
    },
  };
}
