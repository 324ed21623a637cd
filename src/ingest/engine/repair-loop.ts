/** The repair loop: retries the ranges on the ledger of failures that are due, in ever smaller parts. */
import { type BlockRange, type FailedRange, isUnrecoverable } from '../../store/ledger/index-ledger.ts';
import { untilLater } from '../work.ts';
import { historyStep, logProblemsOf, StaleReadingError } from './block-readings.ts';
import type { NetworkReader } from './family.ts';
import { RangeTooLargeError, reasonOf } from './faults.ts';
import { repairDelay, retryDelay } from './timing.ts';

const REPAIRS_AT_ONCE = 4;
/** A failed range is split into so many parts: 10,000 blocks come down to the one at fault in five steps. */
const PARTS = 8;
/**
 * With so many failed ranges none is split any more. A whole stretch of history is missing then, not a few blocks, and a
 * list of all its blocks would be of no use.
 */
const MANY_FAILED_RANGES = 100;

/** @param startsWithRouters whether history begins with the routers, not at a configured block or time */
export function createRepairLoop(reader: NetworkReader, startsWithRouters: boolean) {
  const { progress } = reader;
  const { selector, ledger, recorder, problem, timing } = progress;
  let isIdle = false;
  /** Repairs that failed in a row. */
  let failures = 0;

  const isAlive = () => problem.current === null || reader.health().some(({ healthy }) => healthy);

  /** What can be read must not wait for what cannot: the range is split, or else retried less and less often. */
  const failAgain = async (failure: FailedRange, error: unknown): Promise<void> => {
    const { id, since, failures: times } = failure;
    const reason = reasonOf(error);
    // A node that wants shorter ranges gets them in any case: it would never answer for this one.
    const isSplit = error instanceof RangeTooLargeError || recorder.backlog.failedRanges < MANY_FAILED_RANGES;
    const parts = isSplit ? partsOf(failure) : [failure];
    await recorder.record(() =>
      parts.length > 1
        ? {
            recovered: [id],
            // They have not been tried as such: they come due soon, and only their age is that of the whole.
            failed: parts.map((part) => ({ ...recorder.failureOf(part, reason), since })),
          }
        : { postponed: [{ id, reason, retryInMs: repairDelay(times + 1, timing) }] },
    );
  };

  const repair = async (failure: FailedRange): Promise<void> => {
    const { id, from, to } = failure;
    const mark = recorder.mark();
    const reading = await reader.readHistory(failure, 'whole');
    await recorder.record(() => ({
      ...historyStep(failure, [{ from, to, reading, mark }], progress, startsWithRouters),
      recovered: [id],
    }));
    progress.log(`Blocks ${from} to ${to} have been read at last`);
    logProblemsOf(reading, progress.log);
  };

  /** Retries what is due; false where nothing was, or where a failure asks for a pause. */
  const repairDue = async (signal: AbortSignal): Promise<boolean> => {
    const due = await ledger.dueFailures(selector, REPAIRS_AT_ONCE);
    for (const failure of due) {
      if (signal.aborted) return false;
      try {
        await repair(failure);
        failures = 0;
      } catch (error) {
        if (isUnrecoverable(error) || signal.aborted) throw error;
        if (error instanceof StaleReadingError) continue;
        // Where no endpoint answers at all, the failure says nothing of these blocks.
        if (!isAlive()) throw error;
        await failAgain(failure, error);
        if (error instanceof RangeTooLargeError) continue;
        failures++;
        return false;
      }
    }
    return due.length > 0;
  };

  return {
    /** Whether what was due has been tried. */
    get isIdle() {
      return isIdle;
    },
    /** Runs until the signal; throws what cannot be retried: a lost lease, or a newer schema. */
    async run(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        try {
          if (await repairDue(signal)) continue;
          await recorder.publishWhenDue();
          isIdle = true;
          await untilLater(failures > 0 ? retryDelay(failures, timing) : timing.repairMinMs, signal);
        } catch (error) {
          if (signal.aborted) return;
          if (isUnrecoverable(error)) throw error;
          problem.set(error);
          isIdle = true;
          await untilLater(retryDelay(++failures, timing), signal);
        }
      }
    },
  };
}

/** In parts of the same length, or nearly so; one block cannot be split. */
function partsOf(range: BlockRange): readonly BlockRange[] {
  const length = Math.ceil((range.to - range.from + 1) / PARTS);
  const parts: BlockRange[] = [];
  for (let { from } = range; from <= range.to; from += length) {
    parts.push({ ...range, from, to: Math.min(range.to, from + length - 1) });
  }
  return parts;
}
