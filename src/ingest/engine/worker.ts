/**
 * The worker of one network: continues from the stored state, then runs three loops that share its progress.
 *
 * The follow loop takes the newest blocks as they come, the history loop reads what is behind them, and the repair loop
 * retries what has failed. Every step is one transaction of the store: a worker can be killed at any moment, and the next
 * one continues.
 */
import { type IndexState, isUnrecoverable } from '../../store/ledger/index-ledger.ts';
import { untilLater } from '../work.ts';
import { logProblemsOf } from './block-readings.ts';
import type { NetworkReader, NetworkSource, NetworkStart } from './family.ts';
import { createFollowLoop } from './follow-loop.ts';
import { createHistoryLoop } from './history-loop.ts';
import { historyRange } from './pending-ranges.ts';
import { createRepairLoop } from './repair-loop.ts';
import { retryDelay } from './timing.ts';

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
    const isHeadStuck = followLoop.failedRounds >= MAX_FAILED_ROUNDS;
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
