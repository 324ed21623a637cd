/**
 * The worker of one network: continues from the stored state, then runs three loops that share its progress.
 *
 * The follow loop takes the newest blocks as they come, the history loop reads what is behind them, and the repair loop
 * retries what has failed. Every step is one transaction of the store: a worker can be killed at any moment, and the next
 * one continues.
 */
import {
  type BlockRange,
  type FailedRange,
  type IndexState,
  isUnrecoverable,
} from '../../store/ledger/index-ledger.ts';
import { createPause, untilLater } from '../work.ts';
import { historyStep, logProblemsOf, StaleReadingError } from './block-readings.ts';
import type { NetworkReader, NetworkSource, NetworkStart } from './family.ts';
import { NodeError, RangeTooLargeError, reasonOf } from './faults.ts';
import { createHistoryLoop } from './history-loop.ts';
import { historyRange } from './pending-ranges.ts';
import { runRounds } from './progress.ts';
import { repairDelay, retryDelay } from './timing.ts';

/**
 * A network whose endpoints have failed this often in a row cannot go on at present. With the pauses of `retryDelay`
 * these are two to three minutes.
 */
const MAX_FAILED_ROUNDS = 12;

export type NetworkWorker = ReturnType<typeof createNetworkWorker>;

export function createNetworkWorker(source: NetworkSource, reader: NetworkReader, stopped: AbortSignal) {
  const { progress } = reader;
  const { selector, ledger, head, recorder, problem, timing } = progress;
  const followLoop = createFollowLoop(reader, source.pollEvery);
  const historyLoop = createHistoryLoop(reader, source, () => followLoop.isBehind);
  const repairLoop = createRepairLoop(reader, source.start === null);

  /** Records what the configuration asks for and the store does not have yet. */
  const start = async (state: IndexState): Promise<void> => {
    const networkStart = await reader.readStart();
    const { final, newRouters, contracts, readAgain } = networkStart;
    logProblemsOf(networkStart, progress.log);
    const isNew = state.followedFrom === null;
    const readTo = isNew ? final.number : (head.tip?.number ?? final.number);
    const startBlock = startOf(networkStart, state);
    const first = startBlock ?? state.startBlock ?? 0;
    const before = isNew ? final.number : (state.startBlock ?? first) - 1;
    const deployed = networkStart.deployed ?? 0;
    // History has the events of the routers too. Above it, and before it, they are read on their own: everything that a
    // router ever registered is trusted, even if that was long before the history that is asked for.
    const routersTo = isNew ? Math.min(first - 1, readTo) : readTo;
    const hasRouters = newRouters.length > 0 && deployed <= routersTo;
    await recorder.record(() => ({
      contracts,
      pending: [
        ...(hasRouters
          ? [{ from: deployed, to: routersTo, purpose: 'routers' as const, contracts: newRouters }]
          : []),
        ...(startBlock !== undefined && first <= before ? [historyRange(first, before)] : []),
      ],
      rescans: isNew
        ? []
        : recorder.rescansFor([...contracts.map(({ address }) => address), ...readAgain], readTo),
      lacksAttempts: false,
      rescanUnreadable: true,
      ...(startBlock !== undefined && { startBlock }),
      ...(isNew && { followedFrom: final.number, blocks: [final] }),
    }));
  };

  let failedStarts = 0;

  /** Retries until it succeeds: at the start nothing else can be done. */
  const untilStarted = async (signal: AbortSignal, state: IndexState): Promise<void> => {
    while (!signal.aborted) {
      try {
        await start(state);
        failedStarts = 0;
        problem.clear();
        return;
      } catch (error) {
        if (signal.aborted || isUnrecoverable(error)) throw error;
        problem.set(error);
        failedStarts++;
        await recorder.publish().catch(() => undefined);
        await untilLater(retryDelay(failedStarts, timing), signal);
      }
    }
  };

  /** While one loop reads, the network goes on: each that is not done must have failed again and again. */
  const stuckBecause = (): string | null => {
    const isHeadStuck = followLoop.failedRounds() >= MAX_FAILED_ROUNDS;
    const isHistoryStuck = !historyLoop.isEmpty && historyLoop.failedRounds >= MAX_FAILED_ROUNDS;
    const canFollow = !isHeadStuck && !followLoop.isAtHead;
    const canBackfill = !historyLoop.isEmpty && !isHistoryStuck;
    if (failedStarts >= MAX_FAILED_ROUNDS || (isHeadStuck && !canBackfill))
      return problem.current?.text ?? 'no endpoint answers';
    return isHistoryStuck && !canFollow ? historyLoop.lastFailure : null;
  };

  return {
    runNow: followLoop.runNow,
    /** What there is to know of a worker from outside. */
    get status() {
      const { isAtHead, tasksStartedAt } = followLoop;
      const { isEmpty, isSearchingRouters } = historyLoop;
      return {
        network: source.network,
        head: head.stats,
        /** Where history begins; null while it is being looked for. */
        startBlock: head.startBlock,
        ...recorder.backlog,
        isSearchingRouters,
        ...recorder.counts,
        problem: problem.current?.text ?? null,
        /** All of history has been read, or is on the ledger of failures. */
        isHistoryRead: isEmpty,
        /** The same of all blocks up to the head. */
        isUpToDate: isAtHead && isEmpty && repairLoop.isIdle,
        tasksStartedAt,
        /** Why it cannot go on at present, after many attempts in a row; null while it can. It keeps trying. */
        stuckBecause: stuckBecause(),
      };
    },
    /** Works until it is stopped, or until something cannot be retried: a lost lease, or a newer schema. */
    async run(): Promise<void> {
      const stop = new AbortController();
      const signal = AbortSignal.any([stopped, stop.signal]);
      const state = await ledger.state(selector);
      head.load(state);
      reader.load(state);
      await untilStarted(signal, state);
      if (signal.aborted) return;
      try {
        // How much an earlier worker has left behind is known from the start.
        await recorder.publish();
        const loops = [followLoop, historyLoop, repairLoop].map((loop) => loop.run(signal));
        // The first that fails stops the others; all have ended when this returns.
        await Promise.all(
          loops.map((loop) =>
            loop.catch((error: unknown) => {
              stop.abort();
              throw error;
            }),
          ),
        ).finally(() => Promise.allSettled(loops));
      } finally {
        await recorder.publish().catch(() => undefined);
      }
    },
  };
}

/** Where history begins from now on; undefined where that does not change. */
function startOf({ start, deployed, newRouters }: NetworkStart, state: IndexState): number | undefined {
  const isNew = state.followedFrom === null;
  // The first start of a network, or a router that was added and is older than the others.
  const byRouters =
    start === undefined && newRouters.length > 0 ? (deployed ?? (isNew ? 0 : undefined)) : undefined;
  const wanted = start === undefined ? byRouters : Math.max(start, deployed ?? 0);
  if (wanted === undefined) return undefined;
  const isEarlier = state.startBlock === null ? start !== undefined : wanted < state.startBlock;
  return isNew || isEarlier ? wanted : undefined;
}

// ---- The follow loop

/**
 * The follow loop: reads what is new at the head, again and again, and does the tasks in between. How the head is read,
 * across forks where a chain has them, is up to the family.
 *
 * @param pollEvery milliseconds between looks at the head
 */
function createFollowLoop(reader: NetworkReader, pollEvery: number) {
  const { head, recorder, problem, timing } = reader.progress;
  const pause = createPause();
  const state = {
    /** Whether the newest known block has been read. */
    isAtHead: false,
    /** Whether there is more to read, by the latest look; true before the first. */
    isBehind: true,
    /** When the latest complete round of tasks began, on performance.now()'s clock, like all times here: it never goes back. */
    tasksStartedAt: -1,
  };
  let tasksDueAt = 0;
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
      if (!isMoreLeft) state.tasksStartedAt = begunAt;
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

  return Object.assign(state as Readonly<typeof state>, {
    /** Rounds that failed in a row, of reading the head or of the tasks. */
    failedRounds: () => Math.max(failures, taskFailures),
    /** Looks at the head and does the tasks without waiting for their time. */
    runNow(): void {
      tasksDueAt = 0;
      pause.wake();
    },
    run: (signal: AbortSignal) =>
      runRounds(
        reader.progress,
        signal,
        async () => {
          const hasMore = await reader.follow();
          state.isBehind = hasMore;
          failures = 0;
          await doTasks();
          await recorder.publishWhenDue();
          state.isAtHead = !hasMore;
          if (!hasMore && tasksDueAt > 0) await pause.wait(pollEvery, signal);
        },
        async () => {
          state.isAtHead = false;
          await recorder.publishWhenDue();
          return ++failures;
        },
      ),
  });
}

// ---- The repair loop

const REPAIRS_AT_ONCE = 4;
/** A failed range is split into so many parts: 10,000 blocks come down to the one at fault in five steps. */
const PARTS = 8;
/**
 * With so many failed ranges none is split any more. A whole stretch of history is missing then, not a few blocks, and a
 * list of all its blocks would be of no use.
 */
const MANY_FAILED_RANGES = 100;

/**
 * The repair loop: retries the ranges on the ledger of failures that are due, in ever smaller parts.
 *
 * @param startsWithRouters whether history begins with the routers, not at a configured block or time
 */
function createRepairLoop(reader: NetworkReader, startsWithRouters: boolean) {
  const { progress } = reader;
  const { selector, ledger, recorder, problem, timing } = progress;
  /** Whether what was due has been tried. */
  const state = { isIdle: false };
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

  return Object.assign(state as Readonly<typeof state>, {
    run: (signal: AbortSignal) =>
      runRounds(
        progress,
        signal,
        async () => {
          if (await repairDue(signal)) return;
          await recorder.publishWhenDue();
          state.isIdle = true;
          await untilLater(failures > 0 ? retryDelay(failures, timing) : timing.repairMinMs, signal);
        },
        () => {
          state.isIdle = true;
          return ++failures;
        },
      ),
  });
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
