/**
 * The follow loop: reads what is new at the head, again and again, and does the chores in between.
 *
 * Failures are retried with exponential backoff. How the head is read, across forks where a chain has them, is up to
 * the family.
 */
import { isUnrecoverable } from '../../store/ledger/index-ledger.ts';
import { untilLater } from '../work.ts';
import type { NetworkReader } from './family.ts';
import { NodeFault } from './faults.ts';
import type { Progress } from './progress.ts';
import { retryDelay, type WorkerTiming } from './timing.ts';

export interface FollowLoopOptions {
  readonly reader: NetworkReader;
  readonly progress: Progress;
  readonly timing: WorkerTiming;
  /** Milliseconds between looks at the head. */
  readonly pollEvery: number;
}

export class FollowLoop {
  readonly #options: FollowLoopOptions;
  #isAtHead = false;
  #choresAt = 0;
  #choresBegunAt = -1;

  constructor(options: FollowLoopOptions) {
    this.#options = options;
  }

  /** Whether the newest block has been read, as far as is known. */
  get isAtHead(): boolean {
    return this.#isAtHead;
  }

  /** When the latest complete round of chores began, on performance.now()'s clock. */
  get choresBegunAt(): number {
    return this.#choresBegunAt;
  }

  /** Runs until the signal; throws what ends the work: a lost lease, or a newer schema. */
  async run(signal: AbortSignal): Promise<void> {
    const { reader, progress, timing, pollEvery } = this.#options;
    let failures = 0;
    while (!signal.aborted) {
      try {
        const hasMore = await reader.follow();
        failures = 0;
        await this.#doChores();
        await progress.publishWhenDue();
        this.#isAtHead = !hasMore;
        if (!hasMore) await untilLater(pollEvery, signal);
      } catch (error) {
        if (signal.aborted) return;
        if (isUnrecoverable(error)) throw error;
        failures++;
        this.#isAtHead = false;
        progress.setProblem(error);
        await progress.publishWhenDue();
        await untilLater(retryDelay(failures, timing), signal);
      }
    }
  }

  /** A question that no endpoint answers is reported as a problem. It does not hold up new blocks. */
  async #doChores(): Promise<void> {
    const { reader, progress, timing } = this.#options;
    if (!progress.final || Date.now() - this.#choresAt < timing.choresEveryMs) {
      progress.clearProblem();
      return;
    }
    this.#choresAt = Date.now();
    const begunAt = performance.now();
    try {
      const step = await reader.chores.work();
      if (step) await progress.record(() => step);
      if (!reader.chores.isBehind) this.#choresBegunAt = begunAt;
      progress.clearProblem();
    } catch (error) {
      if (!(error instanceof NodeFault)) throw error;
      progress.setProblem(error);
    }
  }
}
