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
import { retryDelay } from './timing.ts';

/** @param pollEvery milliseconds between looks at the head */
export function createFollowLoop(reader: NetworkReader, pollEvery: number) {
  const { head, recorder, problem, timing } = reader.progress;
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
    /** Whether the newest block has been read, as far as is known. */
    get isAtHead() {
      return isAtHead;
    },
    /** Whether there is more to read, by the latest look; true before the first. */
    get isBehind() {
      return isBehind;
    },
    /** When the latest complete round of tasks began, on performance.now()'s clock. */
    get tasksStartedAt() {
      return tasksStartedAt;
    },
    /** Rounds that failed in a row, of reading the head or of the tasks. */
    get failedRounds() {
      return Math.max(failures, taskFailures);
    },
    /** Looks at the head and does the tasks without waiting for their time. */
    runNow(): void {
      tasksDueAt = 0;
      pause.wake();
    },
    /** Runs until the signal; throws what cannot be retried: a lost lease, or a newer schema. */
    async run(signal: AbortSignal): Promise<void> {
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
